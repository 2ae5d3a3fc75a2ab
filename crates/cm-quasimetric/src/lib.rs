#![doc = include_str!("../README.md")]

mod error;
mod float;
mod head;
mod iqe;
mod panels;
mod residual;
mod rows;
mod simd;

pub use error::Error;
pub use float::Float;
pub use head::{Head, Reduction};
pub use rows::Rows;
