//! Adam.

use serde::{Deserialize, Serialize};

use super::Decay;
use crate::backend::AdamCells;
use crate::check::{Within, fraction, positive};
use crate::{
    Backend, Gradients, Initialiser, Parameter, ParameterSets, Parameters, Result, Snapshot,
};

/// Settings of [`Adam`]. The defaults are the usual ones and the learning rate of the authors'
/// quasimetric and policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamSettings {
    /// Step size; positive.
    pub learning_rate: f32,
    /// Decay of the mean of gradients; in `[0, 1)`.
    pub beta1: f32,
    /// Decay of the mean of squared gradients; in `[0, 1)`.
    pub beta2: f32,
    /// Added to the root of the mean of squares; positive.
    pub epsilon: f32,
    /// The length all gradients together are cut to; positive, or none.
    #[serde(with = "crate::or_none")]
    pub clip: Option<f32>,
    /// How the learning rate falls.
    pub decay: Decay,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self {
            learning_rate: 5e-5,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            clip: None,
            decay: Decay::None,
        }
    }
}

impl AdamSettings {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        positive("learning_rate", self.learning_rate)?;
        fraction("beta1", self.beta1)?;
        fraction("beta2", self.beta2)?;
        positive("epsilon", self.epsilon)?;
        self.clip.map_or(Ok(()), |clip| positive("clip", clip))?;
        self.decay.check().within("decay")
    }
}

/// Adam (Kingma and Ba 2015) over the parameters that a set held when this was made, with optional
/// clipping by global norm.
///
/// Its state (both moments and the number of steps taken) lives on the backend beside the
/// parameters; restoring a
/// [`snapshot`](Self::snapshot) continues exactly where it was taken.
///
/// ```
/// use cm_nn::{Adam, AdamSettings, DfdxBackend, Initialiser, Parameters, gradients};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let x = parameters.create("x", [1, 1], Initialiser::Constant(3.0))?;
/// let settings = AdamSettings { learning_rate: 0.1, ..Default::default() };
/// let adam = Adam::new(&parameters, settings)?;
/// for _ in 0..200 {
///     let (_, mut gradients) = gradients(&backend, &[&parameters], || x.value()?.square())?;
///     adam.step(&mut gradients)?;
/// }
/// assert!(x.to_vec()?[0].abs() < 0.01);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Adam<B: Backend> {
    settings: AdamSettings,
    parameters: Parameters<B>,
    first: Parameters<B>,
    second: Parameters<B>,
    counter: Parameters<B>,
    step: Parameter<B>,
}

impl<B: Backend> Adam<B> {
    /// With zero moments and no steps taken.
    pub fn new(parameters: &Parameters<B>, settings: AdamSettings) -> Result<Self> {
        settings.check()?;
        let empty = || Parameters::new(parameters.backend());
        let (mut first, mut second, mut counter) = (empty(), empty(), empty());
        for parameter in parameters {
            first.create(parameter.name(), parameter.shape(), Initialiser::ZEROS)?;
            second.create(parameter.name(), parameter.shape(), Initialiser::ZEROS)?;
        }
        let step = counter.create("step", [1, 1], Initialiser::ZEROS)?;
        Ok(Self { settings, parameters: parameters.clone(), first, second, counter, step })
    }

    /// Moves the parameters, taking their gradients out of `gradients`; those of other parameters
    /// stay.
    pub fn step(&self, gradients: &mut Gradients<B>) -> Result<()> {
        let gradients = gradients.take(&self.parameters)?;
        let cells = AdamCells {
            parameters: &self.parameters.cells(),
            first: &self.first.cells(),
            second: &self.second.cells(),
            step: self.step.cell(),
        };
        self.parameters.backend().adam(&self.settings, cells, &gradients)
    }

    /// The settings.
    pub fn settings(&self) -> &AdamSettings {
        &self.settings
    }

    /// The state as named sets: `first/<name>` and `second/<name>` for every parameter, and `step`.
    pub fn state(&self) -> ParameterSets<'_, B> {
        ParameterSets::new(self.parameters.backend())
            .with("first/", &self.first)
            .with("second/", &self.second)
            .with("", &self.counter)
    }

    /// The state of one replica on the host.
    pub fn snapshot(&self, replica: usize) -> Result<Snapshot> {
        self.state().snapshot(replica)
    }

    /// Overwrites a replica's state; nothing is changed if the snapshot does not fit.
    pub fn restore(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        self.state().restore(replica, snapshot)
    }
}
