//! Layer normalisation.

use crate::{Backend, Initialiser, Parameter, Parameters, Result, Var};

/// Added to the variance under the square root.
const EPSILON: f32 = 1e-6;

/// Rows shifted and scaled to mean 0 and variance 1, then by a learned gain and bias, named
/// `<name>/gain` and `<name>/bias`.
pub struct LayerNorm<B: Backend> {
    gain: Parameter<B>,
    bias: Parameter<B>,
}

impl<B: Backend> LayerNorm<B> {
    /// Adds gain 1 and bias 0 for `features` columns to `parameters`.
    pub fn new(parameters: &mut Parameters<B>, name: &str, features: usize) -> Result<Self> {
        let one = Initialiser::Constant(1.0);
        let gain = parameters.create(&format!("{name}/gain"), [1, features], one)?;
        let bias = parameters.create(&format!("{name}/bias"), [1, features], Initialiser::ZEROS)?;
        Ok(Self { gain, bias })
    }

    /// `[n, features]` to `[n, features]`.
    pub fn forward(&self, x: &Var<B>) -> Result<Var<B>> {
        x.layer_norm(&self.gain.value()?, &self.bias.value()?, EPSILON)
    }
}
