//! The multiplier of a constraint.

use cm_nn::check::{Within, positive};
use cm_nn::{AdamSettings, Backend, Initialiser, Parameter, Parameters, Var};
use serde::{Deserialize, Serialize};

use crate::{Group, Result};

/// What moves the parameter behind a multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DualOptimiser {
    /// The optimiser of the network that the constraint is about, together with it.
    Together,
    /// Plain gradient steps.
    Sgd {
        /// Step size; positive.
        learning_rate: f32,
    },
    /// Adam of its own.
    Adam(AdamSettings),
}

impl DualOptimiser {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Together => Ok(()),
            Self::Sgd { learning_rate } => positive("learning_rate", *learning_rate).within("sgd"),
            Self::Adam(adam) => adam.check().within("adam"),
        }
    }
}

/// A multiplier `softplus(lambda)` and what moves `lambda`.
///
/// ```
/// use cm_learner::{Dual, DualOptimiser};
/// use cm_nn::{DfdxBackend, Parameters};
///
/// let mut network = Parameters::new(&DfdxBackend::new(0));
/// let dual = Dual::new(&mut network, "lambda", 0.0, DualOptimiser::Together)?;
/// assert_eq!(dual.value()?.softplus()?.item()?, 2.0_f32.ln());
/// assert!(dual.group().is_none() && network.get("lambda").is_some());
/// # Ok::<(), cm_learner::Error>(())
/// ```
pub struct Dual<B: Backend> {
    lambda: Parameter<B>,
    group: Option<Group<B>>,
}

impl<B: Backend> Dual<B> {
    /// `lambda` starts at `start`. It joins `network` if they move together; otherwise it has a
    /// group `dual` of its own.
    pub fn new(
        network: &mut Parameters<B>,
        name: &str,
        start: f32,
        optimiser: DualOptimiser,
    ) -> Result<Self> {
        let start = Initialiser::Constant(start);
        let mut own = Parameters::new(network.backend());
        let mut alone = || own.create(name, [1, 1], start);
        Ok(match optimiser {
            DualOptimiser::Together => {
                Self { lambda: network.create(name, [1, 1], start)?, group: None }
            }
            DualOptimiser::Sgd { learning_rate } => {
                Self { lambda: alone()?, group: Some(Group::sgd("dual", own, learning_rate)?) }
            }
            DualOptimiser::Adam(adam) => {
                Self { lambda: alone()?, group: Some(Group::adam("dual", own, adam)?) }
            }
        })
    }

    /// `lambda` now, before softplus; `[1, 1]`.
    pub fn value(&self) -> Result<Var<B>> {
        self.lambda.value()
    }

    /// Its own group, unless it moves with the network.
    pub fn group(&self) -> Option<&Group<B>> {
        self.group.as_ref()
    }
}
