//! A fully connected layer.

use crate::{Activation, Backend, FixedLayer, Initialiser, Parameter, Parameters, Result, Var};

/// `activation(x w + b)` with `w [inputs, outputs]` and `b [1, outputs]`, named `<name>/w` and
/// `<name>/b`.
pub struct Linear<B: Backend> {
    weight: Parameter<B>,
    bias: Parameter<B>,
    activation: Activation,
}

impl<B: Backend> Linear<B> {
    /// Adds the layer's parameters to `parameters`: the weight as `initialiser` says, the bias
    /// zero.
    pub fn new(
        parameters: &mut Parameters<B>,
        name: &str,
        [inputs, outputs]: [usize; 2],
        initialiser: Initialiser,
        activation: Activation,
    ) -> Result<Self> {
        let weight = parameters.create(&format!("{name}/w"), [inputs, outputs], initialiser)?;
        let bias = parameters.create(&format!("{name}/b"), [1, outputs], Initialiser::ZEROS)?;
        Ok(Self { weight, bias, activation })
    }

    /// `[n, inputs]` to `[n, outputs]`.
    pub fn forward(&self, x: &Var<B>) -> Result<Var<B>> {
        x.linear(&self.weight.value()?, Some(&self.bias.value()?), self.activation)
    }

    /// The layer as it is now, for one row at a time.
    pub fn fixed(&self) -> Result<FixedLayer> {
        FixedLayer::new(&self.weight.value()?, &self.bias.value()?, self.activation)
    }
}
