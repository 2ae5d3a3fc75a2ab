#![doc = include_str!("../README.md")]

mod gciql;
mod gcivl;
mod goal_values;
mod hiql;
mod iql;
mod q_learning;
mod qrl;
mod reward;
mod streams;

pub use cm_nn::{Error, Result};
pub use cm_policy::advantage_weight;
pub use gciql::{Gciql, GciqlSettings};
pub use gcivl::{Gcivl, GcivlSettings};
pub use goal_values::{GoalReward, GoalValueSettings};
pub use hiql::{Hiql, HiqlSettings};
pub use iql::{Iql, IqlSettings, expectile_loss};
pub use q_learning::{QLearning, QLearningSettings};
pub use qrl::{
    Multiplier, PushGoals, Qrl, QrlSettings, TransitionError, TransitionSettings, lagrangian,
    latent_transition_loss, push_loss, transition_excess,
};
pub use reward::{Reward, squared_error};
