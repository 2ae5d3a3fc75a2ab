#![doc = include_str!("../README.md")]

mod env;
mod error;
mod output;
pub mod plot;
pub mod point_maze;
mod rollout;
pub mod tabular;

pub use env::Env;
pub use error::Error;
pub use rollout::{Outcome, Rollout, rollout, success_rate};
