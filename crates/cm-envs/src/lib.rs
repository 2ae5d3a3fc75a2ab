#![doc = include_str!("../README.md")]

#[cfg(feature = "mujoco")]
pub mod ant_maze;
mod cache;
mod env;
mod error;
#[cfg(feature = "mujoco")]
pub mod mujoco;
#[cfg(feature = "mujoco")]
pub mod ogbench;
pub mod point_maze;
mod rollout;
#[cfg(feature = "tabular")]
pub mod tabular;
pub mod walks;

pub use cache::cache_folder;
pub use env::Env;
pub use error::Error;
pub use rollout::{Outcome, Rollout, rollout, rollout_share, success_rate, task_success_rates};
