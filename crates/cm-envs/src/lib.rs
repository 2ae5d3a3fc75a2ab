#![doc = include_str!("../README.md")]

#[cfg(feature = "mujoco")]
pub mod ant_maze;
mod env;
mod error;
#[cfg(feature = "mujoco")]
pub mod mujoco;
pub mod point_maze;
mod rollout;
#[cfg(feature = "tabular")]
pub mod tabular;

pub use env::Env;
pub use error::Error;
pub use rollout::{Outcome, Rollout, rollout, success_rate};
