#![doc = include_str!("../README.md")]

mod batch;
mod dimensions;
mod dual;
mod features;
mod fixed;
mod goals;
mod group;
mod learner;
mod states;
pub mod streams;
mod update;

pub use batch::{Batch, BatchSource, BatchValues, Transitions};
pub use dimensions::Dimensions;
pub use dual::{Dual, DualOptimiser};
pub use features::{FeatureSettings, Features};
pub use fixed::FixedDistance;
pub use goals::{ActorGoals, GoalKinds, Subgoals};
pub use group::{Group, Optimiser};
pub use learner::Learner;
pub use states::StateDistance;
pub use update::{Metrics, Update};

/// Everything here fails the way its matrices do: losses run inside [`cm_nn::gradients`], which
/// needs this error.
pub use cm_nn::{Error, Result};
