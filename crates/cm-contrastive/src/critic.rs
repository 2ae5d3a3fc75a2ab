//! The inner-product critic `f(s, a, g) = phi(s, a)^T psi(g)`.

use cm_learner::{Dimensions, FeatureSettings, Features};
use cm_nn::check::{Within, positive, require};
use cm_nn::{Backend, Initialiser, Mlp, MlpSettings, Over, Parameter, Parameters, Var};
use cm_policy::ActorSettings;
use serde::{Deserialize, Serialize};

use crate::Result;

/// Settings of a [`Critic`]. The default is [`CriticSettings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CriticSettings {
    /// Hidden layers of both encoders.
    pub network: MlpSettings,
    /// What the encoders see of states and actions.
    pub features: FeatureSettings,
    /// Number of features of `phi` and `psi`.
    pub repr_dim: usize,
    /// Whether both are divided by their lengths, and `phi` by a learned temperature.
    pub normalised: bool,
    /// Positive; the inner product is divided by this.
    pub divisor: f32,
}

impl Default for CriticSettings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl CriticSettings {
    /// As the paper writes it: a plain inner product, 4 x 512.
    pub fn paper_text() -> Self {
        Self {
            network: MlpSettings::default(),
            features: FeatureSettings::Raw,
            repr_dim: 64,
            normalised: false,
            divisor: 1.0,
        }
    }

    /// As the authors' code runs it on offline AntMaze: normalised features, a learned temperature,
    /// 4 x 1024.
    pub fn authors_code() -> Self {
        let network = MlpSettings { hidden: vec![1024; 4], ..Default::default() };
        Self { network, normalised: true, ..Self::paper_text() }
    }

    /// The 2-D experiment: 256 features from 3 x 64 swish over soft features, the mean instead of
    /// the sum of products.
    pub fn plane() -> Self {
        let network = ActorSettings::plane().policy.network;
        let features = FeatureSettings::PLANE;
        Self { network, features, repr_dim: 256, normalised: false, divisor: 256.0 }
    }

    /// OGBench's: 512 features from 3 x 512 GELU with layer norm, products over the root of 512.
    pub fn ogbench() -> Self {
        let network = MlpSettings::ogbench();
        Self { network, repr_dim: 512, divisor: 512.0_f32.sqrt(), ..Self::paper_text() }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.network.check().within("network")?;
        self.features.check().within("features")?;
        require(self.repr_dim > 0, "repr_dim", "positive", self.repr_dim)?;
        positive("divisor", self.divisor)
    }
}

/// Added to the length that features are divided by.
const LENGTH_EPSILON: f32 = 1e-8;

/// `f(s, a, g) = phi(s, a)^T psi(g)`, whose parameters are `contrastive/sa_encoder/...`,
/// `contrastive/g_encoder/...` and, if normalised, `contrastive/log_temperature`; with other names
/// in the place of `contrastive` where there are several.
///
/// ```
/// use cm_contrastive::{Critic, CriticSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, MlpSettings, Parameters, Var};
///
/// let backend = DfdxBackend::new(0);
/// let network = MlpSettings { hidden: vec![16], ..Default::default() };
/// let settings = CriticSettings { network, ..Default::default() };
/// let mut parameters = Parameters::new(&backend);
/// let critic = Critic::new(&mut parameters, &settings, &Dimensions::new(3, 2, 0..2)?)?;
/// let state = Var::normal(&backend, [5, 3], 0x300)?;
/// let action = Var::normal(&backend, [5, 2], 0x301)?;
/// let f = critic.pairs(&critic.phi(&state, &action)?, &critic.psi(&state)?)?;
/// assert_eq!(f.shape(), [5, 5]);
/// assert!(f.to_vec()?.iter().all(|f| f.abs() <= 1.0 + 1e-6)); // cosines, at temperature 1
/// # Ok::<(), cm_contrastive::Error>(())
/// ```
pub struct Critic<B: Backend> {
    features: Features<B>,
    sa_encoder: Mlp<B>,
    g_encoder: Mlp<B>,
    log_temperature: Option<Parameter<B>>,
    divisor: f32,
}

impl<B: Backend> Critic<B> {
    /// Adds the critic's parameters to `parameters`.
    pub fn new(
        parameters: &mut Parameters<B>,
        settings: &CriticSettings,
        dimensions: &Dimensions,
    ) -> Result<Self> {
        Self::named("contrastive", parameters, settings, dimensions)
    }

    /// The same with another name.
    pub fn named(
        name: &str,
        parameters: &mut Parameters<B>,
        settings: &CriticSettings,
        dimensions: &Dimensions,
    ) -> Result<Self> {
        Self::build(name, parameters, settings, dimensions, true)
    }

    /// `f(s, g) = phi(s)^T psi(g)`, a critic that does not see actions.
    pub(crate) fn of_states(
        name: &str,
        parameters: &mut Parameters<B>,
        settings: &CriticSettings,
        dimensions: &Dimensions,
    ) -> Result<Self> {
        Self::build(name, parameters, settings, dimensions, false)
    }

    fn build(
        name: &str,
        parameters: &mut Parameters<B>,
        settings: &CriticSettings,
        dimensions: &Dimensions,
        sees_actions: bool,
    ) -> Result<Self> {
        settings.check()?;
        let features = Features::new(parameters.backend(), settings.features, dimensions)?;
        let state = features.state_columns();
        let action = if sees_actions { features.action_columns() } else { 0 };
        let mut encoder = |part, inputs| {
            let name = format!("{name}/{part}");
            Mlp::new(parameters, &name, inputs, &settings.network, settings.repr_dim)
        };
        let sa_encoder = encoder("sa_encoder", state + action)?;
        let g_encoder = encoder("g_encoder", state)?;
        let mut temperature =
            || parameters.create(&format!("{name}/log_temperature"), [1, 1], Initialiser::ZEROS);
        let log_temperature = settings.normalised.then(&mut temperature).transpose()?;
        Ok(Self { features, sa_encoder, g_encoder, log_temperature, divisor: settings.divisor })
    }

    /// `phi(s, a)`, with the temperature and the divisor: `[n, repr_dim]`.
    pub fn phi(&self, state: &Var<B>, action: &Var<B>) -> Result<Var<B>> {
        self.scaled(self.sa_encoder.forward(&self.features.state_action(state, action)?)?)
    }

    /// `phi(s)` of a critic that does not see actions.
    pub(crate) fn phi_of_state(&self, state: &Var<B>) -> Result<Var<B>> {
        self.scaled(self.sa_encoder.forward(&self.features.state(state)?)?)
    }

    fn scaled(&self, phi: Var<B>) -> Result<Var<B>> {
        let phi = match &self.log_temperature {
            Some(temperature) => {
                phi.l2_normalize(LENGTH_EPSILON)?.div(&temperature.value()?.exp()?)?
            }
            None => phi,
        };
        if self.divisor == 1.0 { Ok(phi) } else { phi.scale(1.0 / self.divisor) }
    }

    /// `psi(g)`: `[n, repr_dim]`.
    pub fn psi(&self, goal: &Var<B>) -> Result<Var<B>> {
        let psi = self.g_encoder.forward(&self.features.state(goal)?)?;
        if self.log_temperature.is_some() { psi.l2_normalize(LENGTH_EPSILON) } else { Ok(psi) }
    }

    /// `f(s_i, a_i, g_j)` for all pairs: `[n, m]`.
    pub fn pairs(&self, phi: &Var<B>, psi: &Var<B>) -> Result<Var<B>> {
        phi.matmul(&psi.transpose()?)
    }

    /// `f(s_i, a_i, g_i)`: `[n, 1]`.
    pub fn rows(&self, phi: &Var<B>, psi: &Var<B>) -> Result<Var<B>> {
        phi.mul(psi)?.sum(Over::Columns)
    }

    /// The change of variables that turns the critic into a successor distance (Eq. 16,
    /// `eq:dsd_upper_bound`), for all pairs, `[n, m]`: `f(g_j, a'_j, g_j) - f(s_i, a_i, g_j)`.
    ///
    /// Unlike a quasimetric network it may be negative and may violate triangles.
    pub fn successor_distance_pairs(
        &self,
        [state, action]: [&Var<B>; 2],
        [goal, goal_action]: [&Var<B>; 2],
    ) -> Result<Var<B>> {
        let psi = self.psi(goal)?;
        let f_sg = self.pairs(&self.phi(state, action)?, &psi)?;
        let f_gg = self.rows(&self.phi(goal, goal_action)?, &psi)?;
        f_gg.transpose()?.sub(&f_sg)
    }

    /// As [`successor_distance_pairs`](Self::successor_distance_pairs), row by row, `[n, 1]`.
    pub fn successor_distance_rows(
        &self,
        [state, action]: [&Var<B>; 2],
        [goal, goal_action]: [&Var<B>; 2],
    ) -> Result<Var<B>> {
        let psi = self.psi(goal)?;
        let f_sg = self.rows(&self.phi(state, action)?, &psi)?;
        self.rows(&self.phi(goal, goal_action)?, &psi)?.sub(&f_sg)
    }
}
