//! Parameters that move together.

use cm_nn::{
    Adam, AdamSettings, Backend, Ema, Gradients, ParameterSets, Parameters, Sgd, Var, gradients,
};

use crate::Result;

/// A set of parameters with what moves it.
///
/// A learner has one for each of its losses, which move "only their own parameters": an
/// [`Update`](crate::Update) takes every loss at the parameters that the step began with, and then
/// moves all groups.
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
    /// A moving average of other parameters: a target network.
    Average(Ema<B>),
    /// The same of where those parameters were when the step began.
    AverageBefore(Ema<B>),
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

    /// Parameters that begin as a copy of `sources` and follow them slowly, such as a target
    /// network's: `decay` of them stays at each step.
    pub fn average(
        name: &'static str,
        parameters: Parameters<B>,
        sources: &Parameters<B>,
        decay: f32,
    ) -> Result<Self> {
        let optimiser = Optimiser::Average(Ema::new(&parameters, sources, decay)?);
        Ok(Self { name, parameters, optimiser })
    }

    /// As [`average`](Self::average), but of the sources as the step found them, before it moved
    /// them: OGBench's target networks are one step behind.
    pub fn average_before(
        name: &'static str,
        parameters: Parameters<B>,
        sources: &Parameters<B>,
        decay: f32,
    ) -> Result<Self> {
        let optimiser = Optimiser::AverageBefore(Ema::new(&parameters, sources, decay)?);
        Ok(Self { name, parameters, optimiser })
    }

    /// Its name, unique within a learner.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters<B> {
        &self.parameters
    }

    /// A loss's value and its gradients with respect to this group alone, moving nothing.
    pub fn differentiate(
        &self,
        loss: impl FnOnce() -> Result<Var<B>>,
    ) -> Result<(Var<B>, Gradients<B>)> {
        gradients(self.parameters.backend(), &[&self.parameters], loss)
    }

    /// The optimiser's state; empty unless it is Adam.
    pub fn optimiser_state(&self) -> ParameterSets<'_, B> {
        match &self.optimiser {
            Optimiser::Adam(adam) => adam.state(),
            _ => ParameterSets::new(self.parameters.backend()),
        }
    }

    /// Moves the parameters by their gradients, if gradients move them.
    pub(crate) fn descend(&self, gradients: &mut Gradients<B>) -> Result<()> {
        match &self.optimiser {
            Optimiser::Adam(adam) => adam.step(gradients),
            Optimiser::Sgd(sgd) => sgd.step(gradients),
            Optimiser::Average(_) | Optimiser::AverageBefore(_) => Ok(()),
        }
    }

    /// Moves the parameters towards their sources, if those are to be the step's first ones.
    pub(crate) fn follow_before(&self) -> Result<()> {
        match &self.optimiser {
            Optimiser::AverageBefore(ema) => ema.step(),
            _ => Ok(()),
        }
    }

    /// Moves the parameters towards their sources, if those are to be the step's last ones.
    pub(crate) fn follow(&self) -> Result<()> {
        match &self.optimiser {
            Optimiser::Average(ema) => ema.step(),
            _ => Ok(()),
        }
    }
}
