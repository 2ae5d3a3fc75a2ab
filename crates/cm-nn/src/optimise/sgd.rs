//! Plain gradient descent, for dual variables.

use crate::check::positive;
use crate::{Backend, Gradients, Parameters, Result};

/// `p - learning_rate g` over the parameters that a set held when this was made. It has no state.
///
/// ```
/// use cm_nn::{DfdxBackend, Initialiser, Parameters, Sgd, gradients};
///
/// let backend = DfdxBackend::new(0);
/// let mut duals = Parameters::new(&backend);
/// let lambda = duals.create("lambda", [1, 1], Initialiser::Constant(1.0))?;
/// let (_, mut gradients) = gradients(&backend, &[&duals], || lambda.value()?.scale(3.0))?;
/// Sgd::new(&duals, 0.01)?.step(&mut gradients)?;
/// assert_eq!(lambda.to_vec()?, [0.97]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Sgd<B: Backend> {
    learning_rate: f32,
    parameters: Parameters<B>,
}

impl<B: Backend> Sgd<B> {
    /// A positive learning rate.
    pub fn new(parameters: &Parameters<B>, learning_rate: f32) -> Result<Self> {
        positive("learning_rate", learning_rate)?;
        Ok(Self { learning_rate, parameters: parameters.clone() })
    }

    /// Moves the parameters, taking their gradients out of `gradients`; those of other parameters
    /// stay.
    pub fn step(&self, gradients: &mut Gradients<B>) -> Result<()> {
        let gradients = gradients.take(&self.parameters)?;
        let cells = self.parameters.cells();
        self.parameters.backend().sgd(self.learning_rate, &cells, &gradients)
    }
}
