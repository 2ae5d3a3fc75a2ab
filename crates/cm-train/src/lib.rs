#![doc = include_str!("../README.md")]

mod batches;
mod checkpoint;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
mod evaluate;
mod jobs;
mod method;
mod model;
mod plan;
mod record;
mod run;
mod scaling;
mod settings;
mod task;
mod training;

pub use batches::NOISE;
pub use checkpoint::Checkpoint;
pub use device::{Device, Precision, train};
pub use error::{Error, Result};
pub use evaluate::{Evaluation, evaluate};
pub use jobs::{Job, JobEvent, run_jobs};
pub use method::{Method, MethodSettings};
pub use model::Model;
pub use plan::{GreedyPath, Links, Planner, RoadMap};
pub use record::{EvaluationRow, MetricRow, read_evaluations, read_metrics};
pub use run::RunFolder;
pub use scaling::Scaling;
pub use settings::{EvaluationSettings, RunSettings};
pub use task::{
    Act, AntMazeTask, DataTask, EnvironmentKind, PointMazeTask, Task, TaskSettings, World,
};
pub use training::{Event, Replica, Report, Timings, train_on};
