#![doc = include_str!("../README.md")]

mod batches;
mod calibration;
mod check;
mod checkpoint;
mod container;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
mod evaluate;
mod finish;
mod held_out;
mod jobs;
mod method;
mod model;
mod plan;
mod read_out;
mod record;
mod run;
mod scaling;
mod settings;
mod task;
mod training;

pub use batches::NOISE;
pub use calibration::{Calibration, Steps};
pub use check::{Check, Pair, check, rank_correlation};
pub use checkpoint::Checkpoint;
pub use device::{Device, Precision, train};
pub use error::{Error, Result};
pub use evaluate::Evaluation;
pub use held_out::{Contrast, HeldOut, Validation};
pub use jobs::{Job, JobEvent, job_groups, run_jobs};
pub use method::{Method, MethodSettings};
pub use model::{Model, Places};
pub use plan::{GreedyPath, Links, PlanSettings, Planner, RoadMap, Roads, Trust, Walked};
pub use read_out::ReadOut;
pub use record::{EvaluationRow, MetricRow, read_evaluations, read_metrics};
pub use run::RunFolder;
pub use scaling::Scaling;
pub use settings::{EvaluationSettings, RunSettings};
pub use task::{
    Act, AntMazeTask, DataTask, EnvironmentKind, OgMazeTask, PointMazeTask, Task, TaskSettings,
    World,
};
pub use training::{Event, Replica, Report, Timings, train_on};
