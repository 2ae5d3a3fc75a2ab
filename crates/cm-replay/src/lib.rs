//! Replay.

mod batch;
mod dataset;
mod error;
mod gather;
mod geometric;
mod goals;
mod matrix;
mod numbering;
mod prefetch;
mod sampler;

pub use batch::{Batch, BatchMut};
pub use dataset::Dataset;
pub use error::{Error, Result};
pub use geometric::TruncatedGeometric;
pub use goals::{End, From, GeometricGoals, Goals};
pub use matrix::Matrix;
pub use prefetch::Prefetcher;
pub use sampler::{GOAL_KIND_STREAM, Sampler, TRANSITION_STREAM};
