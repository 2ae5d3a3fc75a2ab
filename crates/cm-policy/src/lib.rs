#![doc = include_str!("../README.md")]

mod actor;
mod gcbc;
mod policy;

pub use actor::{
    Actor, ActorSettings, BehaviourCloning, Extraction, GoalOrder, Mixup, PolicyGoals,
    advantage_weight,
};
pub use gcbc::{Gcbc, GcbcSettings};
pub use policy::{ActionDistribution, Policy, PolicyKind, PolicySettings, PolicySizes};

/// Everything here fails the way its matrices do.
pub use cm_nn::{Error, Result};
