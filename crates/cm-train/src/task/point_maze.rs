//! The paper's 2-D experiment.

use std::ops::Range;
use std::sync::Arc;

use cm_envs::Env;
use cm_envs::point_maze::{Collection, PointMaze, PointMazeSettings};
use cm_learner::Dimensions;
use cm_replay::{Dataset, End, Goals, Matrix};
use serde::{Deserialize, Serialize};

use super::{Environment, Task, TaskSettings};
use crate::{
    EvaluationSettings, HeldOut, Method, MethodSettings, ReadOut, Result, RunSettings, Scaling,
};

/// The paper's 2-D experiment: the world is made and the data collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PointMazeTask {
    /// The world.
    pub world: PointMazeSettings,
    /// The data.
    pub data: Collection,
}

impl Environment for PointMazeTask {
    fn key() -> &'static str {
        "point-maze"
    }

    fn names() -> Vec<&'static str> {
        vec!["pointmaze"]
    }

    fn has_file() -> bool {
        false
    }

    fn preset(&self, method: Method) -> RunSettings {
        RunSettings { task: self.clone().into(), ..RunSettings::plane(method) }
    }

    fn goal_columns(&self, states: usize) -> Range<usize> {
        0..states
    }

    fn with_data_seed(&self, seed: u64) -> Option<TaskSettings> {
        let mut changed = self.clone();
        changed.data.seed = seed;
        Some(changed.into())
    }

    fn describe(&self) -> String {
        format!("pointmaze, data {}", self.data.seed)
    }

    fn open(&self) -> Result<Task> {
        let maze = Arc::new(PointMaze::new(self.world.clone())?);
        let walks = self.data.collect(&maze)?;
        let matrix = |rows: Vec<[f32; 2]>| Matrix::from_vec(rows.len(), 2, rows.into_flattened());
        let data = Dataset::new(matrix(walks.observations)?, matrix(walks.actions)?, walks.ends)?;
        Ok(Task {
            data: Arc::new(data),
            dimensions: Dimensions::new(2, 2, Env::goal_columns(&*maze))?,
            scaling: Scaling::none(2, 2),
            world: Some(maze),
        })
    }
}

impl RunSettings {
    /// The paper's 2-D experiment as the authors' script runs it: 500,000 steps of batches of 256,
    /// discount 0.8.
    pub fn plane(method: Method) -> Self {
        Self {
            seed: 0,
            steps: 500_000,
            batch: 256,
            observation_noise: 0.2,
            stay_at_goal: true,
            log_every: 100,
            evaluate_every: 5_000,
            checkpoint_every: 5_000,
            read_out: if method == Method::Tmd { ReadOut::States } else { ReadOut::NoAction },
            held_out: HeldOut::default(),
            goals: method
                .goals(Goals { include_current: true, end: End::Clip, ..Goals::geometric(0.8) }, 5),
            evaluation: EvaluationSettings::default(),
            plan: None,
            task: PointMazeTask::default().into(),
            method: MethodSettings::plane(method),
        }
    }

    /// The 2-D experiment in a moment, for examples and tests: 30 steps of batches of 16 in a world
    /// of 400 states. Every seed has its own data.
    pub fn tiny_plane(method: Method, seed: u64) -> Self {
        let world = PointMazeSettings { states: 400, horizon: 20, ..Default::default() };
        let data = Collection { trajectories: 50, seed, ..Default::default() };
        Self {
            seed,
            steps: 30,
            batch: 16,
            log_every: 5,
            evaluate_every: 15,
            checkpoint_every: 10,
            evaluation: EvaluationSettings { episodes: 8, ..Default::default() },
            task: PointMazeTask { world, data }.into(),
            ..Self::plane(method)
        }
    }
}
