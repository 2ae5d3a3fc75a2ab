#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod float;
mod head;
mod iqe;
#[cfg(feature = "dfdx")]
mod module;
mod panels;
mod residual;
mod rows;
#[cfg(feature = "dfdx")]
mod tape;
mod threads;

pub use error::Error;
pub use float::Float;
pub use head::{Head, Recorded, Reduction};
#[cfg(feature = "dfdx")]
pub use module::{MaxMeanIqe, MaxMeanIqeConfig};
pub use rows::Rows;
#[cfg(feature = "dfdx")]
pub use tape::{pairwise, pairwise_max_mean, rowwise, rowwise_max_mean};
