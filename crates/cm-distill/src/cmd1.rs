//! CMD 1-step (the paper, `alg:cmd1`): contrastive learning whose energy is a potential minus a
//! quasimetric.

use cm_contrastive::{ContrastiveLoss, ContrastiveSettings};
use cm_learner::{
    Dimensions, FeatureSettings, Features, FixedDistance, Group, Learner, Metrics, StateDistance,
    Transitions, Update,
};
use cm_nn::check::{Within, positive};
use cm_nn::{
    AdamSettings, Backend, Head, Mlp, MlpSettings, Parameters, Quasimetric, QuasimetricSettings,
    Twin, Var,
};
use cm_policy::{Actor, ActorSettings};
use serde::{Deserialize, Serialize};

use crate::{GoalActions, Result, StateMetric, StateMetricSettings};

/// Settings of [`Cmd1`]. The default is [`Cmd1Settings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cmd1Settings {
    /// The quasimetric network; the potential has the same hidden layers.
    pub quasimetric: QuasimetricSettings,
    /// What the networks see of states and actions.
    pub features: FeatureSettings,
    /// Whether there is a potential `c(g)`; without it the energy is minus the distance.
    pub potential: bool,
    /// Whether there are two quasimetrics, of which the policy minimises the larger.
    pub twin: bool,
    /// The contrastive loss.
    pub contrastive: ContrastiveSettings,
    /// Positive; the distance, not the potential, is divided by this in the contrastive loss.
    pub distance_divisor: f32,
    /// How goal actions are shuffled.
    pub goal_actions: GoalActions,
    /// What moves quasimetric and potential.
    pub adam: AdamSettings,
    /// The policy and its loss.
    pub actor: ActorSettings,
    /// A metric on states alone, learned beside; none in the paper.
    #[serde(with = "cm_nn::or_none")]
    pub states: Option<StateMetricSettings>,
}

impl Default for Cmd1Settings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl Cmd1Settings {
    /// As the paper writes it. Its learning rate of 5e-6 is for the contrastive network, which is
    /// CMD-2's ([`Cmd2Settings::paper_text`](crate::Cmd2Settings::paper_text)): in the authors' code
    /// that learns more slowly than quasimetrics do, CMD-1's as well as CMD-2's. So the quasimetric
    /// learns at contrastive RL's 3e-4, as the policy does ([`ActorSettings::paper_text`]).
    pub fn paper_text() -> Self {
        let actor = ActorSettings::paper_text();
        Self {
            quasimetric: QuasimetricSettings::default(),
            features: FeatureSettings::Raw,
            potential: true,
            twin: false,
            contrastive: ContrastiveSettings::paper_text(),
            distance_divisor: 1.0,
            goal_actions: GoalActions::Permuted,
            adam: actor.adam,
            actor,
            states: None,
        }
    }

    /// As the paper writes it, but the policy's loss is contrastive RL's
    /// ([`ActorSettings::contrastive_rl`]): 0.95 of the distance to the row's own goal, 0.05 of the
    /// log-density. The paper's equation has no weights; it takes the cloning term from contrastive
    /// RL, and its hyperparameters "whenever possible".
    ///
    /// ```
    /// use cm_distill::Cmd1Settings;
    /// use cm_policy::{ActorSettings, PolicyGoals};
    ///
    /// let (settings, text) = (Cmd1Settings::contrastive_rl(), Cmd1Settings::paper_text());
    /// settings.check()?;
    /// assert_eq!(settings.actor.goals, PolicyGoals::Own);
    /// assert_eq!(settings.actor.extraction, ActorSettings::contrastive_rl().extraction);
    /// assert_eq!(Cmd1Settings { actor: text.actor.clone(), ..settings }, text);
    /// # Ok::<(), cm_distill::Error>(())
    /// ```
    pub fn contrastive_rl() -> Self {
        let ActorSettings { extraction, goals, .. } = ActorSettings::contrastive_rl();
        let text = Self::paper_text();
        Self { actor: ActorSettings { extraction, goals, ..text.actor }, ..text }
    }

    /// As the authors' code runs it on offline AntMaze: 4 x 1024, logits divided by 8, Adam 5e-5.
    pub fn authors_code() -> Self {
        let network = MlpSettings { hidden: vec![1024; 4], ..Default::default() };
        Self {
            quasimetric: QuasimetricSettings { network, ..Default::default() },
            contrastive: ContrastiveSettings::authors_code(),
            goal_actions: GoalActions::Rolled,
            adam: AdamSettings::default(),
            actor: ActorSettings::authors_code(),
            ..Self::paper_text()
        }
    }

    /// The 2-D experiment: two metrics of 256 + 256 features, each half by its own 3 x 64 swish
    /// network, distances divided by 256 in the loss, Adam as for the policy
    /// ([`ActorSettings::plane`]).
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            quasimetric: plane_quasimetric(),
            features: FeatureSettings::PLANE,
            twin: true,
            distance_divisor: 256.0,
            adam: actor.adam,
            actor,
            ..Self::paper_text()
        }
    }

    /// The version that the authors released for OGBench with TMD: two means of 8 MRNs over 512
    /// features, 3 x 512 GELU with layer norm, binary NCE of minus the distance over the root of
    /// 512, no potential, Adam 3e-4, other rows' own actions at the goals.
    pub fn ogbench() -> Self {
        let actor = ActorSettings::ogbench();
        let (head, network) = (ogbench_head(8, 512), MlpSettings::ogbench());
        Self {
            quasimetric: QuasimetricSettings { head, network, ..Default::default() },
            goal_actions: GoalActions::RolledData,
            potential: false,
            twin: true,
            contrastive: ContrastiveSettings {
                loss: ContrastiveLoss::BinaryNce,
                divisor: 512.0_f32.sqrt(),
            },
            adam: actor.adam,
            actor,
            ..Self::paper_text()
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.quasimetric.check().within("quasimetric")?;
        self.features.check().within("features")?;
        self.contrastive.check().within("contrastive")?;
        positive("distance_divisor", self.distance_divisor)?;
        self.adam.check().within("adam")?;
        self.states.iter().try_for_each(|states| states.check().within("states"))?;
        self.actor.check().within("actor")
    }
}

/// The quasimetric of the 2-D experiment.
pub(crate) fn plane_quasimetric() -> QuasimetricSettings {
    let network = ActorSettings::plane().policy.network;
    QuasimetricSettings { separate: true, network, ..Default::default() }
}

/// The MRN of the authors' OGBench code: means of `components`, with 1e-6 under each root.
pub(crate) fn ogbench_head(components: usize, features: usize) -> Head {
    let half = features / (2 * components);
    Head::Mrn { components, epsilon: 1e-6 / half as f64 }
}

/// CMD 1-step: `f(s, a, g) = c(g) - d((s, a), (g, a'))` (Eq. 12, `eq:critic_reparam`) learned
/// contrastively, so that `d` is the successor distance.
///
/// Parameters: `quasimetric/...` (and `quasimetric_1/...` if twin), `potential/...`, `policy/...`,
/// and those of [`StateMetric`] if there is one.
pub struct Cmd1<B: Backend> {
    dimensions: Dimensions,
    settings: Cmd1Settings,
    features: Features<B>,
    quasimetrics: Twin<Quasimetric<B>>,
    potential: Option<Mlp<B>>,
    group: Group<B>,
    actor: Actor<B>,
    states: Option<StateMetric<B>>,
}

impl<B: Backend> Cmd1<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &Cmd1Settings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let mut parameters = Parameters::new(backend);
        let inputs = features.state_columns() + features.action_columns();
        let names = ["quasimetric", "quasimetric_1"];
        let quasimetrics = Twin::one_or_two(names, settings.twin, |name| {
            Quasimetric::new(&mut parameters, name, inputs, &settings.quasimetric)
        })?;
        let (state, hidden) = (features.state_columns(), &settings.quasimetric.network);
        let mut potential = || Mlp::new(&mut parameters, "potential", state, hidden, 1);
        let potential = settings.potential.then(&mut potential).transpose()?;
        Ok(Self {
            dimensions: dimensions.clone(),
            settings: settings.clone(),
            features,
            quasimetrics,
            potential,
            group: Group::adam("quasimetric", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
            states: StateMetric::of(backend, settings.states.as_ref(), dimensions)?,
        })
    }

    /// The contrastive loss with shuffled goal actions (Eq. 13, `eq:contrastive_loss_reparam`),
    /// `[1, 1]`; the mean over both quasimetrics if twin.
    pub fn contrastive_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let goal_action = self.settings.goal_actions.of(batch)?;
        let from = self.features.state_action(&batch.state, &batch.action)?;
        let to = self.features.state_action(&batch.goal, &goal_action)?;
        // c(g_j), one for each column.
        let potential = match &self.potential {
            Some(c) => Some(c.forward(&self.features.state(&batch.goal)?)?.transpose()?),
            None => None,
        };
        let loss = |d: &Quasimetric<B>| {
            let [from, to] = d.features_of_both(&from, &to)?;
            let distance = d.pairs(&from, &to)?;
            let minus_distance = distance.scale(-1.0 / self.settings.distance_divisor)?;
            // Eq. 12, eq:critic_reparam
            let energy = match &potential {
                Some(c) => minus_distance.add(c)?,
                None => minus_distance,
            };
            self.settings.contrastive.of(&energy)
        };
        self.quasimetrics.join(loss, |first, second| first.add(second)?.scale(0.5))
    }

    /// The policy's loss (Eq. 23, `eq:policy_loss`), `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, goal_action] = self.actor.goals(batch)?;
        let goal_action = match self.settings.goal_actions {
            GoalActions::RolledData => self.settings.goal_actions.of(batch)?,
            GoalActions::Rolled | GoalActions::Permuted => goal_action,
        };
        let to = self.features.state_action(&goal, &goal_action)?;
        let distance = |action: &Var<B>| {
            self.larger_distance(&self.features.state_action(&batch.state, action)?, &to)
        };
        self.actor.loss(batch, &goal, distance, metrics)
    }

    /// `d(x, y)` row by row, the larger of the two if twin.
    fn larger_distance(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        let distance = |d: &Quasimetric<B>| d.rows(&d.features(from)?, &d.features(to)?);
        self.quasimetrics.join(distance, |first, second| first.maximum(second))
    }

    /// What the distance is divided by to be the successor distance.
    fn divisor(&self) -> f32 {
        self.settings.distance_divisor * self.settings.contrastive.divisor
    }

    /// `compare` of each quasimetric's part of the points, the larger of the two if twin.
    fn larger_of_points(
        &self,
        from: &Var<B>,
        to: &Var<B>,
        compare: impl Fn(&Quasimetric<B>, &Var<B>, &Var<B>) -> Result<Var<B>>,
    ) -> Result<Var<B>> {
        let members = self.quasimetrics.members();
        let width = from.columns() / members.len();
        let of = |index: usize| {
            let part = index * width..(index + 1) * width;
            let (from, to) = (from.slice_columns(part.clone())?, to.slice_columns(part)?);
            compare(&members[index], &from, &to)
        };
        let larger = match members.len() {
            1 => compare(&members[0], from, to)?,
            _ => of(0)?.maximum(&of(1)?)?,
        };
        larger.scale(1.0 / self.divisor())
    }
}

/// `d((s, 0), (g, 0))`: a point is the features of all quasimetrics, one beside the other.
impl<B: Backend> StateDistance<B> for Cmd1<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        let x = self.features.without_action(state)?;
        let join = |first: &Var<B>, second: &Var<B>| Var::concat_columns(&[first, second]);
        self.quasimetrics.join(|d| d.features(&x), join)
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.larger_of_points(from, to, Quasimetric::rows)
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.larger_of_points(from, to, Quasimetric::pairs)
    }

    fn fixed(&self) -> Result<Option<FixedDistance>> {
        let members = self.quasimetrics.members().iter().map(Quasimetric::fixed);
        let Some(members) = members.collect::<Result<Option<_>>>()? else { return Ok(None) };
        let scale = 1.0 / self.divisor();
        Ok(Some(FixedDistance::new(self.features.fixed_state()?, members, scale)))
    }
}

impl<B: Backend> Learner<B> for Cmd1<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("contrastive_loss", &[&self.group], |_| self.contrastive_loss(batch))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })?;
        self.states.iter().try_for_each(|states| states.losses(batch, update))
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `d((s, a), (g, a'))` over the settings' divisors: at the optimum the successor distance (Eq.
    /// 14, `eq:successor_diff_2`).
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        goal_action: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        let from = self.features.state_action(state, action)?;
        let to = self.features.state_action(goal, goal_action)?;
        self.larger_distance(&from, &to)?.scale(1.0 / self.divisor()).map(Some)
    }

    fn without_action(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn states(&self) -> Option<&dyn StateDistance<B>> {
        self.states.as_ref().map(|states| states as &dyn StateDistance<B>)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        let mut groups = vec![&self.group, self.actor.group()];
        groups.extend(self.states.as_ref().map(StateMetric::group));
        groups
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
