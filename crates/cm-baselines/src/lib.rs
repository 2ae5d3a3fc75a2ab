#![doc = include_str!("../README.md")]

mod batch;
mod check;
mod error;
mod iql;
mod metric;
mod metrics;
mod qrl;
mod reward;
mod state;

pub use batch::{Batch, Sizes};
pub use error::{Error, Result};
pub use iql::{IqlCritic, IqlSettings, expectile_loss};
pub use metric::{HeadSettings, Metric, MetricSettings};
pub use metrics::Metrics;
pub use qrl::{
    DualOptimiser, QrlCritic, QrlSettings, TransitionSettings, lagrangian, latent_transition_loss,
    push_loss, transition_excess,
};
pub use reward::{Reward, squared_error};
