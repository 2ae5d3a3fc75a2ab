#![doc = include_str!("../README.md")]

mod actor;
mod batch;
mod dimensions;
mod features;
mod gcbc;
mod group;
mod learner;
mod policy;
pub mod streams;

pub use actor::{Actor, ActorSettings, BehaviourCloning, Extraction, Mixup, PolicyGoals};
pub use batch::Batch;
pub use dimensions::Dimensions;
pub use features::{FeatureSettings, Features};
pub use gcbc::{Gcbc, GcbcSettings};
pub use group::{Group, Optimiser};
pub use learner::{Learner, Metrics};
pub use policy::{ActionDistribution, Policy, PolicyKind, PolicySettings};

/// Everything here fails the way its matrices do: losses run inside [`cm_nn::gradients`], which needs this error.
pub use cm_nn::{Error, Result};
