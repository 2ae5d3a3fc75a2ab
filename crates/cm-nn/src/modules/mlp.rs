//! Multi-layer perceptrons.

use serde::{Deserialize, Serialize};

use super::{FixedMlp, LayerNorm, Linear};
use crate::check::{Within, require};
use crate::{Activation, Backend, Initialiser, Parameters, Result, Var};

/// Hidden part of a multi-layer perceptron.
///
/// The defaults are the networks of the paper: four layers of 512, ReLU, weights uniform with
/// variance one over the number of inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpSettings {
    /// Widths of the hidden layers; may be empty, and then the perceptron is linear.
    pub hidden: Vec<usize>,
    /// What follows each hidden layer.
    pub activation: Activation,
    /// Whether each activation is followed by a layer norm.
    pub layer_norm: bool,
    /// Initial weights.
    pub initialiser: Initialiser,
}

impl Default for MlpSettings {
    fn default() -> Self {
        Self {
            hidden: vec![512; 4],
            activation: Activation::Relu,
            layer_norm: false,
            initialiser: Initialiser::LECUN_UNIFORM,
        }
    }
}

impl MlpSettings {
    /// OGBench's networks of values: 3 x 512, GELU, a layer norm after each, weights uniform with
    /// variance one over the mean of inputs and outputs.
    pub fn ogbench() -> Self {
        Self {
            hidden: vec![512; 3],
            activation: Activation::Gelu,
            layer_norm: true,
            initialiser: Initialiser::GLOROT_UNIFORM,
        }
    }

    /// Refuses a layer without units and initial weights outside their range.
    pub fn check(&self) -> Result<()> {
        require(!self.hidden.contains(&0), "hidden", "widths of at least 1", "0")?;
        self.initialiser.check().within("initialiser")
    }
}

/// A multi-layer perceptron: hidden layers (linear, activation, optionally layer norm), then one
/// linear layer. The layers are named `<name>/linear_0`, `<name>/linear_1` and so on, the norms
/// `<name>/norm_0` and so on.
///
/// ```
/// use cm_nn::{DfdxBackend, Mlp, MlpSettings, Parameters, Var};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let settings = MlpSettings { hidden: vec![16, 16], ..Default::default() };
/// let encoder = Mlp::new(&mut parameters, "encoder", 3, &settings, 8)?;
///
/// let x = Var::new(&backend, [5, 3], vec![0.1; 15])?;
/// assert_eq!(encoder.forward(&x)?.shape(), [5, 8]);
/// assert!(parameters.get("encoder/linear_2/w").is_some());
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Mlp<B: Backend> {
    hidden: Vec<(Linear<B>, Option<LayerNorm<B>>)>,
    output: Option<Linear<B>>,
}

impl<B: Backend> Mlp<B> {
    /// A perceptron from `inputs` to `outputs` columns.
    pub fn new(
        parameters: &mut Parameters<B>,
        name: &str,
        inputs: usize,
        settings: &MlpSettings,
        outputs: usize,
    ) -> Result<Self> {
        let mut mlp = Self::hidden(parameters, name, inputs, settings)?;
        let width = settings.hidden.last().copied().unwrap_or(inputs);
        let last = format!("{name}/linear_{}", settings.hidden.len());
        let (init, identity) = (settings.initialiser, Activation::Identity);
        mlp.output = Some(Linear::new(parameters, &last, [width, outputs], init, identity)?);
        Ok(mlp)
    }

    /// The hidden layers alone, such as a policy puts several heads on; at least one.
    pub fn trunk(
        parameters: &mut Parameters<B>,
        name: &str,
        inputs: usize,
        settings: &MlpSettings,
    ) -> Result<Self> {
        let some = !settings.hidden.is_empty();
        require(some, "hidden", "at least one layer for a trunk", "none")?;
        Self::hidden(parameters, name, inputs, settings)
    }

    /// `[n, inputs]` to `[n, outputs]`.
    pub fn forward(&self, x: &Var<B>) -> Result<Var<B>> {
        let mut x = x.clone();
        for (linear, norm) in &self.hidden {
            x = linear.forward(&x)?;
            if let Some(norm) = norm {
                x = norm.forward(&x)?;
            }
        }
        match &self.output {
            Some(output) => output.forward(&x),
            None => Ok(x),
        }
    }

    /// The network as it is now, for one row at a time; none if there are layer norms.
    pub fn fixed(&self) -> Result<Option<FixedMlp>> {
        if self.hidden.iter().any(|(_, norm)| norm.is_some()) {
            return Ok(None);
        }
        let layers = self.hidden.iter().map(|(linear, _)| linear).chain(&self.output);
        Ok(Some(FixedMlp::new(layers.map(Linear::fixed).collect::<Result<_>>()?)))
    }

    fn hidden(
        parameters: &mut Parameters<B>,
        name: &str,
        inputs: usize,
        settings: &MlpSettings,
    ) -> Result<Self> {
        let mut width = inputs;
        let mut hidden = Vec::with_capacity(settings.hidden.len());
        for (index, &next) in settings.hidden.iter().enumerate() {
            let layer = format!("{name}/linear_{index}");
            let (init, activation) = (settings.initialiser, settings.activation);
            let linear = Linear::new(parameters, &layer, [width, next], init, activation)?;
            let norm = settings
                .layer_norm
                .then(|| LayerNorm::new(parameters, &format!("{name}/norm_{index}"), next));
            hidden.push((linear, norm.transpose()?));
            width = next;
        }
        Ok(Self { hidden, output: None })
    }
}
