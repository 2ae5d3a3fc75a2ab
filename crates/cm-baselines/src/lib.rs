#![doc = include_str!("../README.md")]

mod iql;
mod q_learning;
mod qrl;
mod reward;
mod streams;

pub use cm_nn::{Error, Result};
pub use iql::{Iql, IqlSettings, advantage_weight, expectile_loss};
pub use q_learning::{QLearning, QLearningSettings};
pub use qrl::{
    Qrl, QrlSettings, TransitionSettings, lagrangian, latent_transition_loss, push_loss,
    transition_excess,
};
pub use reward::{Reward, squared_error};
