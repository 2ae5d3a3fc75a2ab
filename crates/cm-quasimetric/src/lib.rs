#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod float;
mod head;
mod iqe;
mod module;
mod panels;
mod residual;
mod rows;
mod tape;

pub use error::Error;
pub use float::Float;
pub use head::{Head, Recorded, Reduction};
pub use module::{MaxMeanIqe, MaxMeanIqeConfig};
pub use rows::Rows;
pub use tape::{pairwise, pairwise_max_mean, rowwise, rowwise_max_mean};
