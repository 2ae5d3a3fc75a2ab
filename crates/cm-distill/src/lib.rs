#![doc = include_str!("../README.md")]

mod cmd1;
mod cmd2;
mod goal_actions;
mod objective;
mod state_metric;
mod tmd;

pub use cmd1::{Cmd1, Cmd1Settings};
pub use cmd2::{Cmd2, Cmd2Settings};
pub use goal_actions::GoalActions;
pub use objective::Objective;
pub use state_metric::{StateMetric, StateMetricSettings};
pub use tmd::{Cut, InvariantActions, PolicySees, Tmd, TmdSettings};

/// Losses run inside [`cm_nn::gradients`], so everything here fails the way its matrices do.
pub use cm_nn::{Error, Result};
