#![doc = include_str!("../README.md")]

mod actor;
mod gcbc;
mod policy;

pub use actor::{Actor, ActorSettings, BehaviourCloning, Extraction, Mixup, PolicyGoals};
pub use gcbc::{Gcbc, GcbcSettings};
pub use policy::{ActionDistribution, Policy, PolicyKind, PolicySettings};

/// Everything here fails the way its matrices do.
pub use cm_nn::{Error, Result};
