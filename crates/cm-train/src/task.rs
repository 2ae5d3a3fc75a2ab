//! Where a run's data comes from and where its policy acts.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cm_envs::ant_maze::AntMaze;
use cm_envs::mujoco::Mujoco;
use cm_envs::point_maze::{Collection, PointMaze, PointMazeSettings};
use cm_envs::{Env, Outcome, Rollout, rollout};
use cm_learner::Dimensions;
use cm_replay::{Dataset, Matrix, ReadOptions, read};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, Scaling};

/// Which task: in TOML a table of its name, `[task.point-maze]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TaskSettings {
    /// The paper's 2-D experiment: the world is made and the data collected.
    PointMaze {
        /// The world.
        #[serde(default)]
        world: PointMazeSettings,
        /// The data.
        #[serde(default)]
        data: Collection,
    },
    /// D4RL's AntMaze on MuJoCo, which is looked for when the task is opened.
    AntMaze {
        /// The task, such as `antmaze-umaze-v2`.
        task: String,
        /// The file of its data, downloaded or generated.
        file: PathBuf,
        /// Whether states and actions are brought to size first.
        #[serde(default = "yes")]
        scale: bool,
    },
    /// Trajectories of one's own; there is nothing to evaluate in.
    Data {
        /// The file: CSV, npz, safetensors, HDF5 or cmdata.
        file: PathBuf,
        /// First and one-beyond-last coordinate of a state that are the goal a policy sees; all if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<[usize; 2]>,
        /// Whether states and actions are brought to size first.
        #[serde(default = "yes")]
        scale: bool,
    },
}

fn yes() -> bool {
    true
}

/// A task made ready: its data read or mapped, its world built.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is learned from, scaled.
    pub data: Arc<Dataset>,
    /// Sizes of states, actions and goals.
    pub dimensions: Dimensions,
    /// How the data was brought to size.
    pub scaling: Scaling,
    /// Where the policy acts; nowhere if only data was given.
    pub world: Option<Arc<dyn World>>,
}

/// An environment of any type, in which a policy is evaluated. Every [`Env`] is one.
pub trait World: fmt::Debug + Send + Sync {
    /// [`Env::observation_width`].
    fn observation_width(&self) -> usize;

    /// [`Env::goal_columns`].
    fn goal_columns(&self) -> Range<usize>;

    /// [`Env::places`].
    fn places(&self) -> Option<&[[f32; 2]]>;

    /// [`rollout`] with a policy that fills in actions for observations and goals.
    fn rollout(&self, plan: &Rollout, act: &mut Act<'_>) -> Result<Vec<Outcome>>;
}

/// A policy to a [`World`]: observations `[n, observation]` and goals `[n, goal]` to actions.
pub type Act<'a> = dyn FnMut(&[f32], &[f32], &mut [f32]) -> Result<()> + 'a;

impl<E: Env + fmt::Debug + Send> World for E {
    fn observation_width(&self) -> usize {
        Env::observation_width(self)
    }

    fn goal_columns(&self) -> Range<usize> {
        Env::goal_columns(self)
    }

    fn places(&self) -> Option<&[[f32; 2]]> {
        Env::places(self)
    }

    fn rollout(&self, plan: &Rollout, act: &mut Act<'_>) -> Result<Vec<Outcome>> {
        rollout(self, plan, act)
    }
}

impl Task {
    /// Where the policy acts, or an error if there is no such place.
    pub fn world(&self) -> Result<&dyn World> {
        self.world.as_deref().ok_or(Error::NoEnvironment)
    }
}

impl TaskSettings {
    /// The paper's 2-D experiment.
    pub fn point_maze() -> Self {
        Self::PointMaze { world: PointMazeSettings::default(), data: Collection::default() }
    }

    /// Which of a state's coordinates are the goal a policy sees.
    pub(crate) fn goal_columns(&self, states: usize) -> Range<usize> {
        match self {
            Self::PointMaze { .. } | Self::Data { goal: None, .. } => 0..states,
            Self::AntMaze { .. } => 0..2,
            Self::Data { goal: Some([first, end]), .. } => *first..*end,
        }
    }

    /// The seed of data that is collected; data from a file has none.
    pub fn set_data_seed(&mut self, seed: u64) {
        if let Self::PointMaze { data, .. } = self {
            data.seed = seed;
        }
    }

    /// Makes the world, collects or reads the data.
    pub fn open(&self) -> Result<Task> {
        match self {
            Self::PointMaze { world, data } => {
                let maze = Arc::new(PointMaze::new(world.clone())?);
                let data = Arc::new(point_maze_data(&maze, data)?);
                Ok(Task {
                    data,
                    dimensions: Dimensions::new(2, 2, Env::goal_columns(&*maze))?,
                    scaling: Scaling::none(2, 2),
                    world: Some(maze),
                })
            }
            Self::AntMaze { task, file, scale } => {
                let maze = Arc::new(AntMaze::new(&Mujoco::find()?, task.parse()?)?);
                self.with_data(file, *scale, Some(maze))
            }
            Self::Data { file, scale, .. } => self.with_data(file, *scale, None),
        }
    }

    fn with_data(&self, file: &Path, scale: bool, world: Option<Arc<dyn World>>) -> Result<Task> {
        let data = read(file, &ReadOptions::default())?;
        let (states, actions) = (data.observations().columns(), data.actions().columns());
        let dimensions = Dimensions::new(states, actions, self.goal_columns(states))?;
        let (scaling, data) = if scale {
            let scaling = Scaling::of(&data);
            let data = scaling.apply(data)?;
            (scaling, data)
        } else {
            (Scaling::none(states, actions), data)
        };
        Ok(Task { data: Arc::new(data), dimensions, scaling, world })
    }
}

fn point_maze_data(maze: &PointMaze, collection: &Collection) -> Result<Dataset> {
    let walks = collection.collect(maze)?;
    let matrix = |rows: Vec<[f32; 2]>| Matrix::from_vec(rows.len(), 2, rows.into_flattened());
    Ok(Dataset::new(matrix(walks.observations)?, matrix(walks.actions)?, walks.ends)?)
}
