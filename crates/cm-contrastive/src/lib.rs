#![doc = include_str!("../README.md")]

mod critic;
mod crl;
mod loss;

pub use critic::{Critic, CriticSettings};
pub use crl::{Crl, CrlSettings};
pub use loss::{ContrastiveLoss, ContrastiveSettings};

/// Losses run inside [`cm_nn::gradients`], so everything here fails the way its matrices do.
pub use cm_nn::{Error, Result};
