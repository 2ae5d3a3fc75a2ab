//! Where a run's data comes from and where its policy acts.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cm_envs::Env;
use cm_envs::ant_maze::AntMaze;
use cm_envs::mujoco::Mujoco;
use cm_envs::point_maze::{Collection, PointMaze, PointMazeSettings};
use cm_learner::Dimensions;
use cm_replay::{Dataset, Matrix, ReadOptions, read};
use serde::{Deserialize, Serialize};

use crate::{Result, Scaling};

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
        /// First and one-beyond-last coordinate of a state that are the goal a policy sees; all if absent.
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
    /// Where the policy acts.
    pub world: World,
}

/// The environments a policy can be evaluated in.
#[derive(Clone, Debug)]
pub enum World {
    /// None: only data was given.
    None,
    /// The 2-D world.
    PointMaze(Arc<PointMaze>),
    /// An ant in a maze.
    AntMaze(Arc<AntMaze>),
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

    /// Makes the world, collects or reads the data.
    pub fn open(&self) -> Result<Task> {
        match self {
            Self::PointMaze { world, data } => {
                let maze = Arc::new(PointMaze::new(world.clone())?);
                let data = Arc::new(point_maze_data(&maze, data)?);
                Ok(Task {
                    data,
                    dimensions: Dimensions::new(2, 2, maze.goal_columns())?,
                    scaling: Scaling::none(2, 2),
                    world: World::PointMaze(maze),
                })
            }
            Self::AntMaze { task, file, scale } => {
                let maze = Arc::new(AntMaze::new(&Mujoco::find()?, task.parse()?)?);
                self.with_data(file, *scale, World::AntMaze(maze))
            }
            Self::Data { file, scale, .. } => self.with_data(file, *scale, World::None),
        }
    }

    fn with_data(&self, file: &Path, scale: bool, world: World) -> Result<Task> {
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
