#![doc = include_str!("../README.md")]

pub mod ant_maze;
mod env;
mod error;
pub mod mujoco;
pub mod plot;
pub mod point_maze;
mod rollout;
pub mod tabular;

pub use env::Env;
pub use error::Error;
pub use rollout::{Outcome, Rollout, rollout, success_rate};
