//! Plain gradient descent, for dual variables.

use super::check_learning_rate;
use crate::{Backend, Gradients, Parameters, Result};

/// `p - learning_rate g` over the parameters that a set held when this was made. It has no state.
pub struct Sgd<B: Backend> {
    learning_rate: f32,
    parameters: Parameters<B>,
}

impl<B: Backend> Sgd<B> {
    /// A positive learning rate.
    pub fn new(parameters: &Parameters<B>, learning_rate: f32) -> Result<Self> {
        check_learning_rate(learning_rate)?;
        Ok(Self { learning_rate, parameters: parameters.clone() })
    }

    /// Moves the parameters, taking their gradients out of `gradients`; those of other parameters stay.
    pub fn step(&self, gradients: &mut Gradients<B>) -> Result<()> {
        let gradients = gradients.take(&self.parameters)?;
        let cells = self.parameters.cells();
        self.parameters.backend().sgd(self.learning_rate, &cells, &gradients)
    }
}
