#![doc = include_str!("../README.md")]

mod batch;
mod dataset;
mod draw;
mod error;
mod gather;
mod geometric;
mod goals;
mod lags;
mod matrix;
mod numbering;
mod offsets;
mod prefetch;
pub mod read;
mod sampler;
mod split;
pub mod store;
mod summary;

pub use batch::{Batch, BatchMut, GoalRows, GoalRowsMut};
pub use dataset::Dataset;
pub use error::{Error, Result};
pub use geometric::TruncatedGeometric;
pub use goals::{End, Goals, MixedGoals};
pub use matrix::{Matrix, RowWriter};
pub use prefetch::Prefetcher;
pub use read::{CsvColumns, ReadOptions, read};
pub use sampler::{ACTOR_GOAL_STREAM, GOAL_KIND_STREAM, Sampler, TRANSITION_STREAM};
pub use split::{SPLIT_STREAM, Split};
pub use summary::{ArraySummary, Column, Normalization, Summary};
