//! Goal-conditioned policies.

use std::ops::Range;

use cm_learner::{Dimensions, FeatureSettings, Features};
use cm_nn::check::{Within, require};
use cm_nn::{Activation, Backend, Initialiser, Linear, Mlp, MlpSettings, Over, Parameters, Var};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Settings of a [`Policy`]. The defaults are the paper's: tanh-Gaussian, 4 x 512, states as they
/// are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Which kind of policy.
    pub kind: PolicyKind,
    /// Its hidden layers, at least one.
    pub network: MlpSettings,
    /// What it sees of states and goals.
    pub features: FeatureSettings,
    /// Initial weights of the layer that makes the action; as the hidden layers' if none.
    #[serde(with = "cm_nn::or_none")]
    pub output: Option<Initialiser>,
}

impl PolicySettings {
    /// OGBench's: a normal with constant deviation, 3 x 512 GELU without layer norm, first actions
    /// close to 0.
    pub fn ogbench() -> Self {
        Self {
            kind: PolicyKind::UnitGaussian,
            network: MlpSettings { layer_norm: false, ..MlpSettings::ogbench() },
            features: FeatureSettings::Raw,
            output: Some(Initialiser::glorot_uniform(0.01)),
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let some = !self.network.hidden.is_empty();
        require(some, "network.hidden", "at least one layer", "none")?;
        self.network.check().within("network")?;
        self.output.iter().try_for_each(|output| output.check().within("output"))?;
        self.features.check().within("features")
    }
}

/// Kinds of policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// A normal distribution squashed by tanh, for actions in `[-1, 1]`; its mode is `tanh(mean)`.
    #[default]
    TanhGaussian,
    /// A deterministic direction: the network's output divided by its length.
    UnitVector,
    /// A normal distribution with standard deviation 1, cut to `[-1, 1]` where it acts; its density
    /// is that of the uncut normal.
    UnitGaussian,
}

/// What [`Policy::sized`] sees and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySizes {
    /// Coordinates of a state.
    pub state: usize,
    /// Numbers that a goal is.
    pub goal: usize,
    /// Coordinates of an action.
    pub action: usize,
}

/// `pi(a | s, g)`, from the state and the goal's coordinates.
///
/// Parameters: `policy/mlp/linear_i` (the hidden layers), `policy/mean` and, if tanh-Gaussian,
/// `policy/scale`.
///
/// ```
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, MlpSettings, Parameters, Var};
/// use cm_policy::{Policy, PolicySettings};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let network = MlpSettings { hidden: vec![16], ..Default::default() };
/// let settings = PolicySettings { network, ..Default::default() };
/// let dimensions = Dimensions::new(3, 2, 0..1)?;
/// let policy = Policy::new(&mut parameters, &settings, &dimensions)?;
///
/// let state = Var::new(&backend, [1, 3], vec![0.1, 0.2, 0.3])?;
/// let goal = Var::new(&backend, [1, 3], vec![0.9, 0.0, 0.0])?;
/// let actions = policy.forward(&state, &policy.goal(&goal)?)?;
/// let action = actions.mode()?;
/// assert!(action.to_vec()?.iter().all(|a| a.abs() < 1.0));
/// assert_eq!(actions.log_density(&action)?.shape(), [1, 1]);
/// # Ok::<(), cm_policy::Error>(())
/// ```
pub struct Policy<B: Backend> {
    features: Features<B>,
    goal: Range<usize>,
    trunk: Mlp<B>,
    kind: PolicyKind,
    mean: Linear<B>,
    scale: Option<Linear<B>>,
}

/// Added to the scale, so that it is positive.
const SMALLEST_SCALE: f32 = 1e-6;
/// Added to the length of a direction.
const LENGTH_EPSILON: f32 = 1e-6;

impl<B: Backend> Policy<B> {
    /// Adds the policy's parameters to `parameters`.
    pub fn new(
        parameters: &mut Parameters<B>,
        settings: &PolicySettings,
        dimensions: &Dimensions,
    ) -> Result<Self> {
        let features = Features::new(parameters.backend(), settings.features, dimensions)?;
        let goal = features.columns_of(dimensions.goal_columns().len());
        let sizes = [features.state_columns() + goal, dimensions.action()];
        Self::build(parameters, "policy", settings, features, dimensions.goal_columns(), sizes)
    }

    /// A policy called `name` in place of `policy`, whose goals are `sizes.goal` numbers of any
    /// kind and whose actions may be anything, such as subgoals. What it sees is as it is.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, MlpSettings, Parameters, Var};
    /// use cm_policy::{Policy, PolicySettings, PolicySizes};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let mut parameters = Parameters::new(&backend);
    /// let sizes = PolicySizes { state: 3, goal: 10, action: 2 };
    /// let policy = Policy::sized(&mut parameters, "low", &PolicySettings::ogbench(), sizes)?;
    /// let [state, goal] = [3, 10].map(|columns| Var::full(&backend, [1, columns], 0.5));
    /// assert_eq!(policy.forward(&state?, &goal?)?.mode()?.shape(), [1, 2]);
    /// assert!(parameters.get("low/mean/w").is_some());
    /// # Ok::<(), cm_policy::Error>(())
    /// ```
    pub fn sized(
        parameters: &mut Parameters<B>,
        name: &str,
        settings: &PolicySettings,
        sizes: PolicySizes,
    ) -> Result<Self> {
        let raw = settings.features == FeatureSettings::Raw;
        let expected = "`raw` where goals are not states";
        require(raw, "features", expected, "soft features")?;
        let PolicySizes { state, goal, action } = sizes;
        let dimensions = Dimensions::new(state, action, 0..state)?;
        let features = Features::new(parameters.backend(), settings.features, &dimensions)?;
        Self::build(parameters, name, settings, features, 0..goal, [state + goal, action])
    }

    fn build(
        parameters: &mut Parameters<B>,
        name: &str,
        settings: &PolicySettings,
        features: Features<B>,
        goal: Range<usize>,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Self> {
        settings.check()?;
        let trunk = Mlp::trunk(parameters, &format!("{name}/mlp"), inputs, &settings.network)?;
        // A trunk has at least one layer.
        let width = settings.network.hidden.last().copied().unwrap_or(inputs);
        let mut head = |part| {
            let init = settings.output.unwrap_or(settings.network.initialiser);
            let (name, shape) = (format!("{name}/{part}"), [width, outputs]);
            Linear::new(parameters, &name, shape, init, Activation::Identity)
        };
        let mean = head("mean")?;
        let scale = match settings.kind {
            PolicyKind::TanhGaussian => Some(head("scale")?),
            PolicyKind::UnitVector | PolicyKind::UnitGaussian => None,
        };
        Ok(Self { features, goal, trunk, kind: settings.kind, mean, scale })
    }

    /// The coordinates of a whole goal state that the policy sees.
    pub fn goal(&self, goal: &Var<B>) -> Result<Var<B>> {
        goal.slice_columns(self.goal.clone())
    }

    /// The distribution of actions at `state [n, state]` for the goal coordinates `goal [n, goal]`.
    pub fn forward(&self, state: &Var<B>, goal: &Var<B>) -> Result<ActionDistribution<B>> {
        let (state, goal) = (self.features.state(state)?, self.features.coordinates(goal)?);
        let hidden = self.trunk.forward(&Var::concat_columns(&[&state, &goal])?)?;
        let mean = self.mean.forward(&hidden)?;
        let shape = match (self.kind, &self.scale) {
            (_, Some(scale)) => {
                let scale = scale.forward(&hidden)?.softplus()?.affine(1.0, SMALLEST_SCALE)?;
                Shape::TanhGaussian { scale }
            }
            (PolicyKind::UnitGaussian, None) => Shape::UnitGaussian,
            (_, None) => Shape::UnitVector,
        };
        Ok(ActionDistribution { mean, shape })
    }
}

/// The distribution of actions at each row.
#[derive(Clone)]
pub struct ActionDistribution<B: Backend> {
    mean: Var<B>,
    shape: Shape<B>,
}

/// What a [`PolicyKind`] needs beside the mean.
#[derive(Clone)]
enum Shape<B: Backend> {
    TanhGaussian { scale: Var<B> },
    UnitVector,
    UnitGaussian,
}

impl<B: Backend> ActionDistribution<B> {
    /// Of some rows.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Result<Self> {
        let shape = match &self.shape {
            Shape::TanhGaussian { scale } => {
                Shape::TanhGaussian { scale: scale.slice_rows(rows.clone())? }
            }
            Shape::UnitVector => Shape::UnitVector,
            Shape::UnitGaussian => Shape::UnitGaussian,
        };
        Ok(Self { mean: self.mean.slice_rows(rows)?, shape })
    }

    /// The mean, which is the mode before it is squashed, cut or given its length.
    pub fn mean(&self) -> &Var<B> {
        &self.mean
    }

    /// The action used in evaluation: `tanh(mean)`, the direction, or the mean cut to `[-1, 1]`.
    pub fn mode(&self) -> Result<Var<B>> {
        match self.shape {
            Shape::TanhGaussian { .. } => self.mean.tanh(),
            Shape::UnitVector => self.mean.l2_normalize(LENGTH_EPSILON),
            Shape::UnitGaussian => self.mean.clamp(-1.0, 1.0),
        }
    }

    /// An action drawn from the numbers of `stream`, differentiable in the policy; the mode if the
    /// policy is deterministic.
    pub fn sample(&self, stream: u32) -> Result<Var<B>> {
        let noise = || Var::normal(self.mean.backend(), self.mean.shape(), stream);
        match &self.shape {
            Shape::TanhGaussian { scale } => self.mean.add(&scale.mul(&noise()?)?)?.tanh(),
            Shape::UnitVector => self.mode(),
            Shape::UnitGaussian => self.mean.add(&noise()?)?.clamp(-1.0, 1.0),
        }
    }

    /// Log-density of `action`, summed over columns, `[n, 1]`; an error if the policy is
    /// deterministic.
    ///
    /// Near the bounds the density of a squashed normal is so steep that rounding of the action
    /// decides it. Beyond `|a| = 0.999` it is therefore the mean density of that whole tail, see
    /// [`Backend::tanh_normal_log_density`].
    pub fn log_density(&self, action: &Var<B>) -> Result<Var<B>> {
        match &self.shape {
            Shape::TanhGaussian { scale } => self.mean.tanh_normal_log_density(scale, action),
            Shape::UnitGaussian => {
                let squares = self.mean.sub(action)?.square()?.sum(Over::Columns)?;
                let constant = 0.5 * action.columns() as f32 * std::f32::consts::TAU.ln();
                squares.affine(-0.5, -constant)
            }
            Shape::UnitVector => Err(Error::Setting {
                setting: "behaviour_cloning".to_owned(),
                expected: "a squared error where the policy has no density",
                found: "log-density of a unit-vector policy".to_string(),
            }),
        }
    }
}
