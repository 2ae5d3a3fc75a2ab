//! A quasimetric on states alone, learned contrastively beside a method.

use cm_contrastive::ContrastiveSettings;
use cm_learner::{
    Dimensions, FeatureSettings, Features, FixedDistance, Group, Metrics, StateDistance,
    Transitions, Update,
};
use cm_nn::check::{Within, positive};
use cm_nn::{
    Activation, AdamSettings, Backend, Head, Initialiser, Mlp, MlpSettings, Parameters,
    Quasimetric, QuasimetricSettings, Var,
};
use serde::{Deserialize, Serialize};

use crate::Result;

/// Settings of a [`StateMetric`]. The default is [`StateMetricSettings::own_data`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateMetricSettings {
    /// The quasimetric network; the potential has the same hidden layers.
    pub quasimetric: QuasimetricSettings,
    /// What the networks see of states.
    pub features: FeatureSettings,
    /// The contrastive loss.
    pub contrastive: ContrastiveSettings,
    /// Positive; the distance, not the potential, is divided by this in the contrastive loss.
    pub distance_divisor: f32,
    /// What moves both networks.
    pub adam: AdamSettings,
}

impl Default for StateMetricSettings {
    fn default() -> Self {
        Self::own_data()
    }
}

impl StateMetricSettings {
    /// A start for data of one's own, whose states are scaled to deviation 1.
    pub fn own_data() -> Self {
        let network = MlpSettings {
            hidden: vec![64; 2],
            activation: Activation::Silu,
            initialiser: Initialiser::CUT_NORMAL,
            ..Default::default()
        };
        Self {
            quasimetric: QuasimetricSettings {
                head: Head::Max,
                features: 256,
                separate: false,
                network,
            },
            features: FeatureSettings::soft(64, 3.0, 0.08),
            contrastive: ContrastiveSettings::paper_text(),
            distance_divisor: 0.1,
            adam: AdamSettings {
                learning_rate: 1e-3,
                epsilon: 1e-6,
                clip: Some(1.0),
                ..Default::default()
            },
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.quasimetric.check().within("quasimetric")?;
        self.features.check().within("features")?;
        self.contrastive.check().within("contrastive")?;
        positive("distance_divisor", self.distance_divisor)?;
        self.adam.check().within("adam")
    }
}

/// A quasimetric `d(s, g)` on states: CMD 1-step (Eq. 12, `eq:critic_reparam`) of the walk that the
/// data took, whatever its actions were.
///
/// The successor distance of a Markov chain (Eq. 5, `eq:basic_quasimetric_definition_uncontrolled`)
/// is a quasimetric on states, and the data's policy makes the world such a chain. So nothing has
/// to be asked about actions, seen or unseen; the triangle inequality holds exactly, and the
/// distance from a state to itself is exactly 0.
///
/// Parameters: `states/quasimetric/...`, `states/potential/...`.
///
/// ```
/// use cm_distill::{StateMetric, StateMetricSettings};
/// use cm_learner::{Dimensions, StateDistance};
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let dimensions = Dimensions::new(2, 1, 0..2)?;
/// let metric = StateMetric::new(&backend, &StateMetricSettings::own_data(), &dimensions)?;
/// let states = Var::new(&backend, [3, 2], vec![0.0, 0.0, 1.0, -1.0, 0.5, 2.0])?;
/// let points = metric.points(&states)?;
/// let all = metric.pairs(&points, &points)?.to_vec()?;
/// assert_eq!(all[0], 0.0);
/// assert!(all[2] <= all[1] + all[5] + 1e-5);
/// # Ok::<(), cm_distill::Error>(())
/// ```
pub struct StateMetric<B: Backend> {
    settings: StateMetricSettings,
    features: Features<B>,
    quasimetric: Quasimetric<B>,
    potential: Mlp<B>,
    group: Group<B>,
}

impl<B: Backend> StateMetric<B> {
    /// Refuses settings outside their ranges.
    pub fn new(
        backend: &B,
        settings: &StateMetricSettings,
        dimensions: &Dimensions,
    ) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let (inputs, network) = (features.state_columns(), &settings.quasimetric.network);
        let mut parameters = Parameters::new(backend);
        let name = "states/quasimetric";
        let quasimetric = Quasimetric::new(&mut parameters, name, inputs, &settings.quasimetric)?;
        let potential = Mlp::new(&mut parameters, "states/potential", inputs, network, 1)?;
        let group = Group::adam("states", parameters, settings.adam)?;
        Ok(Self { settings: settings.clone(), features, quasimetric, potential, group })
    }

    /// One if there are settings of one.
    pub(crate) fn of(
        backend: &B,
        settings: Option<&StateMetricSettings>,
        dimensions: &Dimensions,
    ) -> Result<Option<Self>> {
        settings.map(|settings| Self::new(backend, settings, dimensions)).transpose()
    }

    /// What is learned.
    pub fn group(&self) -> &Group<B> {
        &self.group
    }

    /// The energies `c(g_j) - d(s_i, g_j)` of every state with every goal, `[n, n]`, not yet divided
    /// by the contrastive loss's divisor.
    pub fn energies(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let seen = self.features.state(goal)?;
        let potential = self.potential.forward(&seen)?.transpose()?;
        let q = &self.quasimetric;
        let [from, to] = q.features_of_both(&self.features.state(state)?, &seen)?;
        q.pairs(&from, &to)?.scale(-1.0 / self.settings.distance_divisor)?.add(&potential)
    }

    /// The contrastive loss (Eq. 13, `eq:contrastive_loss_reparam`), `[1, 1]`.
    pub fn loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        self.settings.contrastive.of(&self.energies(&batch.state, &batch.goal)?)
    }

    /// Hands the loss to `update`.
    pub fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        let loss = |_: &mut Metrics<B>| self.loss(batch);
        update.minimise("state_loss", &[&self.group], loss)
    }

    fn divisor(&self) -> f32 {
        self.settings.distance_divisor * self.settings.contrastive.divisor
    }
}

impl<B: Backend> StateDistance<B> for StateMetric<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.features(&self.features.state(state)?)
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(from, to)?.scale(1.0 / self.divisor())
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.pairs(from, to)?.scale(1.0 / self.divisor())
    }

    fn fixed(&self) -> Result<Option<FixedDistance>> {
        let Some(quasimetric) = self.quasimetric.fixed()? else { return Ok(None) };
        let scale = 1.0 / self.divisor();
        Ok(Some(FixedDistance::new(self.features.fixed_state()?, vec![quasimetric], scale)))
    }

    fn logits(&self, state: &Var<B>, goal: &Var<B>) -> Result<Option<Var<B>>> {
        let energies = self.energies(state, goal)?;
        energies.scale(1.0 / self.settings.contrastive.divisor).map(Some)
    }
}
