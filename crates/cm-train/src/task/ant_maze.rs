//! D4RL's AntMaze.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use cm_envs::ant_maze::{self, AntMaze, CellRule, Maze};
use cm_envs::mujoco::Mujoco;
use cm_replay::{Dataset, Goals};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::maze_data::MazeData;
use super::{Environment, Task};
use crate::{EvaluationSettings, HeldOut, Method, MethodSettings, ReadOut, Result, RunSettings};

/// D4RL's AntMaze on MuJoCo, which is looked for when the task is opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AntMazeTask {
    /// The task, such as `antmaze-umaze-v2`.
    pub task: String,
    /// The file of its data, downloaded or generated.
    pub file: PathBuf,
    /// Whether states and actions are brought to size first; not in the authors' code.
    #[serde(default)]
    pub scale: bool,
}

impl Environment for AntMazeTask {
    fn key() -> &'static str {
        "ant-maze"
    }

    fn names() -> Vec<&'static str> {
        ant_maze::Task::ALL.map(ant_maze::Task::name).to_vec()
    }

    fn named(name: &str) -> Option<Table> {
        // The simulator's tasks have still shorter names, which would not be told from others'.
        let task = name.starts_with("antmaze-").then(|| name.parse::<ant_maze::Task>().ok())??;
        Some(Table::from_iter([("task".to_owned(), task.name().into())]))
    }

    fn has_file() -> bool {
        true
    }

    fn preset(&self, method: Method) -> RunSettings {
        RunSettings::ant_maze(method, self.clone())
    }

    fn goal_columns(&self, _states: usize) -> Range<usize> {
        0..2
    }

    fn describe(&self) -> String {
        self.task.clone()
    }

    fn open(&self) -> Result<Task> {
        let task: ant_maze::Task = self.task.parse()?;
        let world = AntMaze::new(&Mujoco::find()?, task)?;
        let data = Task::read(&self.file)?;
        self.check(&data, task.maze())?;
        Task::of_data(data, self.scale, self, Some(Arc::new(world)))
    }
}

impl AntMazeTask {
    /// Refuses data of another body or of another maze.
    fn check(&self, data: &Dataset, maze: Maze) -> Result<()> {
        let of_maze = MazeData {
            file: &self.file,
            task: &self.task,
            observation: ant_maze::STATE,
            action: ant_maze::ACTION,
            maze: maze.to_string(),
        };
        of_maze.check(data, |place| maze.is_wall(CellRule::Round.cell(place)))
    }
}

impl RunSettings {
    /// AntMaze as the authors' code runs it offline: 500,000 steps of batches of 1024, hidden
    /// layers of 4 x 1024, discount 0.99, 50 episodes per evaluation.
    pub fn ant_maze(method: Method, task: AntMazeTask) -> Self {
        let steps = 500_000;
        let mut of_method = MethodSettings::ant_maze(method, &[1024; 4]);
        of_method.set_decay_steps(steps);
        Self {
            seed: 0,
            steps,
            batch: 1024,
            observation_noise: 0.0,
            stay_at_goal: false,
            log_every: 100,
            evaluate_every: 10_000,
            checkpoint_every: 10_000,
            read_out: if method == Method::Tmd { ReadOut::States } else { ReadOut::NoAction },
            held_out: HeldOut::default(),
            goals: method.goals(Goals::geometric(0.99), 25),
            evaluation: EvaluationSettings { episodes: 50, seed: 0, untrained: false },
            plan: None,
            task: task.into(),
            method: of_method,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_d4rl_are_of_their_own_maze_alone() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cm-data/tests/d4rl_rows");
        for task in ant_maze::Task::ALL {
            let name = task.name().trim_start_matches("antmaze-").replace("-v2", "-v0.hdf5");
            let (file, maze) = (folder.join(&name), task.maze());
            let data = Task::read(&file).unwrap();
            let task = AntMazeTask { task: task.name().to_owned(), file, scale: false };
            task.check(&data, maze).unwrap();
            if data.observations().rows() < 100 {
                // The 67 rows of medium-diverse stay where every maze is free.
                continue;
            }
            for other in Maze::ALL.into_iter().filter(|&other| other != maze) {
                let message = task.check(&data, other).unwrap_err().to_string();
                let wall = format!("in walls of the maze {other}");
                assert!(message.contains(&name) && message.contains(&wall), "{message}");
            }
        }
    }
}
