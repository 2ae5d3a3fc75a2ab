//! Parameters that move together.

use cm_nn::{Adam, AdamSettings, Backend, Gradients, Parameters, Sgd, Snapshot, Var, gradients};

use crate::Result;

/// A set of parameters with what moves it.
///
/// A learner has one for each of its losses, which move "only their own parameters": [`differentiate`](Self::differentiate) them all, and
/// then [`apply`](Self::apply) them all, so that every loss is taken at the parameters the step began with.
pub struct Group<B: Backend> {
    name: &'static str,
    parameters: Parameters<B>,
    optimiser: Optimiser<B>,
}

/// What moves a [`Group`].
pub enum Optimiser<B: Backend> {
    /// Adam.
    Adam(Adam<B>),
    /// Plain gradient descent.
    Sgd(Sgd<B>),
    /// Nothing but an average kept elsewhere: target networks.
    None,
}

impl<B: Backend> Group<B> {
    /// Parameters that Adam moves.
    pub fn adam(
        name: &'static str,
        parameters: Parameters<B>,
        settings: AdamSettings,
    ) -> Result<Self> {
        let optimiser = Optimiser::Adam(Adam::new(&parameters, settings)?);
        Ok(Self { name, parameters, optimiser })
    }

    /// Parameters that plain gradient descent moves.
    pub fn sgd(name: &'static str, parameters: Parameters<B>, learning_rate: f32) -> Result<Self> {
        let optimiser = Optimiser::Sgd(Sgd::new(&parameters, learning_rate)?);
        Ok(Self { name, parameters, optimiser })
    }

    /// Parameters that no gradient moves, such as a target network's.
    pub fn fixed(name: &'static str, parameters: Parameters<B>) -> Self {
        Self { name, parameters, optimiser: Optimiser::None }
    }

    /// Its name, unique within a learner.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters<B> {
        &self.parameters
    }

    /// The loss's value and its gradients with respect to this group alone.
    pub fn differentiate(
        &self,
        loss: impl FnOnce() -> Result<Var<B>>,
    ) -> Result<(Var<B>, Gradients<B>)> {
        gradients(self.parameters.backend(), &[&self.parameters], loss)
    }

    /// Moves the parameters by their gradients.
    pub fn apply(&self, gradients: &mut Gradients<B>) -> Result<()> {
        match &self.optimiser {
            Optimiser::Adam(adam) => adam.step(gradients),
            Optimiser::Sgd(sgd) => sgd.step(gradients),
            Optimiser::None => Ok(()),
        }
    }

    /// The optimiser's state; empty unless it is Adam.
    pub fn optimiser_snapshot(&self) -> Result<Snapshot> {
        match &self.optimiser {
            Optimiser::Adam(adam) => adam.snapshot(),
            Optimiser::Sgd(_) | Optimiser::None => Ok(Snapshot::default()),
        }
    }

    /// Overwrites the optimiser's state; nothing is changed if the snapshot does not fit.
    pub fn restore_optimiser(&self, snapshot: &Snapshot) -> Result<()> {
        match &self.optimiser {
            Optimiser::Adam(adam) => adam.restore(snapshot),
            Optimiser::Sgd(_) | Optimiser::None => Ok(()),
        }
    }
}
