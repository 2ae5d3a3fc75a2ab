//! CMD 2-step (the paper, `alg:cmd2`): a contrastive critic, distilled into a quasimetric under a
//! constraint.

use cm_contrastive::{ContrastiveSettings, Critic, CriticSettings};
use cm_learner::{
    Dimensions, Dual, DualOptimiser, FeatureSettings, Features, FixedDistance, Group, Learner,
    Metrics, StateDistance, Transitions, Update,
};
use cm_nn::check::{Within, finite, positive};
use cm_nn::{
    AdamSettings, Backend, MlpSettings, Parameters, Quasimetric, QuasimetricSettings, Var,
};
use cm_policy::{Actor, ActorSettings};
use serde::{Deserialize, Serialize};

use crate::cmd1::plane_quasimetric;
use crate::{GoalActions, Objective, Result, StateMetric, StateMetricSettings};

/// Settings of [`Cmd2`]. The default is [`Cmd2Settings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cmd2Settings {
    /// The contrastive critic.
    pub critic: CriticSettings,
    /// Its loss.
    pub contrastive: ContrastiveSettings,
    /// What moves it.
    pub critic_adam: AdamSettings,
    /// The quasimetric network that the critic is distilled into.
    pub quasimetric: QuasimetricSettings,
    /// What it sees of states and actions.
    pub features: FeatureSettings,
    /// Positive; what the quasimetric network's output is divided by to give the distance.
    pub distance_divisor: f32,
    /// How goal actions are shuffled.
    pub goal_actions: GoalActions,
    /// The objective.
    pub objective: Objective,
    /// The bound on the constraint, the paper's `epsilon^2`; positive.
    pub margin: f32,
    /// What the dual variable `lambda` starts at, before softplus.
    pub initial_lambda: f32,
    /// What moves the dual variable.
    pub dual: DualOptimiser,
    /// What moves the quasimetric network.
    pub quasimetric_adam: AdamSettings,
    /// The policy and its loss.
    pub actor: ActorSettings,
    /// A metric on states alone, learned beside; none in the paper.
    #[serde(with = "cm_nn::or_none")]
    pub states: Option<StateMetricSettings>,
}

impl Default for Cmd2Settings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl Cmd2Settings {
    /// As the paper writes it, with its learning rate 5e-6 of the contrastive network, and the
    /// policy's ([`ActorSettings::paper_text`]) for the rest.
    pub fn paper_text() -> Self {
        let actor = ActorSettings::paper_text();
        Self {
            critic: CriticSettings::paper_text(),
            contrastive: ContrastiveSettings::paper_text(),
            critic_adam: AdamSettings { learning_rate: 5e-6, ..Default::default() },
            quasimetric: QuasimetricSettings::default(),
            features: FeatureSettings::Raw,
            distance_divisor: 1.0,
            goal_actions: GoalActions::Permuted,
            objective: Objective::PaperText,
            margin: 0.35,
            initial_lambda: 1.0,
            dual: DualOptimiser::Sgd { learning_rate: 0.01 },
            quasimetric_adam: actor.adam,
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
    /// use cm_distill::Cmd2Settings;
    /// use cm_policy::{ActorSettings, PolicyGoals};
    ///
    /// let (settings, text) = (Cmd2Settings::contrastive_rl(), Cmd2Settings::paper_text());
    /// settings.check()?;
    /// assert_eq!(settings.actor.goals, PolicyGoals::Own);
    /// assert_eq!(settings.actor.extraction, ActorSettings::contrastive_rl().extraction);
    /// assert_eq!(Cmd2Settings { actor: text.actor.clone(), ..settings }, text);
    /// # Ok::<(), cm_distill::Error>(())
    /// ```
    pub fn contrastive_rl() -> Self {
        let ActorSettings { extraction, goals, .. } = ActorSettings::contrastive_rl();
        let text = Self::paper_text();
        Self { actor: ActorSettings { extraction, goals, ..text.actor }, ..text }
    }

    /// As the authors' code runs it on offline AntMaze: 4 x 1024, Adam 1e-5 for the critic and 5e-5
    /// for the rest, dual variable included.
    pub fn authors_code() -> Self {
        let network = MlpSettings { hidden: vec![1024; 4], ..Default::default() };
        Self {
            critic: CriticSettings::authors_code(),
            contrastive: ContrastiveSettings::authors_code(),
            critic_adam: AdamSettings { learning_rate: 1e-5, ..Default::default() },
            quasimetric: QuasimetricSettings { network, ..Default::default() },
            objective: Objective::AuthorsCode,
            dual: DualOptimiser::Together,
            quasimetric_adam: AdamSettings::default(),
            actor: ActorSettings::authors_code(),
            ..Self::paper_text()
        }
    }

    /// The 2-D experiment: distances divided by 256, margin 0.05, Adam as for the policy
    /// ([`ActorSettings::plane`]), plain steps of 0.01 for the dual variable.
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            critic: CriticSettings::plane(),
            critic_adam: actor.adam,
            quasimetric: plane_quasimetric(),
            features: FeatureSettings::PLANE,
            distance_divisor: 256.0,
            objective: Objective::Plane,
            margin: 0.05,
            quasimetric_adam: actor.adam,
            actor,
            ..Self::paper_text()
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.critic.check().within("critic")?;
        self.contrastive.check().within("contrastive")?;
        self.critic_adam.check().within("critic_adam")?;
        self.quasimetric.check().within("quasimetric")?;
        self.features.check().within("features")?;
        positive("distance_divisor", self.distance_divisor)?;
        positive("margin", self.margin)?;
        finite("initial_lambda", self.initial_lambda)?;
        self.dual.check().within("dual")?;
        self.quasimetric_adam.check().within("quasimetric_adam")?;
        self.states.iter().try_for_each(|states| states.check().within("states"))?;
        self.actor.check().within("actor")
    }
}

/// CMD 2-step: a contrastive critic `f`, and a quasimetric `d` distilled from
/// `f(g, a, g) - f(s, a, g)` (Eq. 16, `eq:dsd_upper_bound`).
///
/// Parameters: `contrastive/...`, `quasimetric/...`, `lambda`, `policy/...`,
/// and those of [`StateMetric`] if there is one.
pub struct Cmd2<B: Backend> {
    dimensions: Dimensions,
    settings: Cmd2Settings,
    critic: Critic<B>,
    critic_group: Group<B>,
    features: Features<B>,
    quasimetric: Quasimetric<B>,
    quasimetric_group: Group<B>,
    dual: Dual<B>,
    actor: Actor<B>,
    states: Option<StateMetric<B>>,
}

impl<B: Backend> Cmd2<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &Cmd2Settings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let mut contrastive = Parameters::new(backend);
        let critic = Critic::new(&mut contrastive, &settings.critic, dimensions)?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let inputs = features.state_columns() + features.action_columns();
        let mut parameters = Parameters::new(backend);
        let quasimetric =
            Quasimetric::new(&mut parameters, "quasimetric", inputs, &settings.quasimetric)?;
        let Cmd2Settings { initial_lambda, dual, .. } = *settings;
        let dual = Dual::new(&mut parameters, "lambda", initial_lambda, dual)?;
        Ok(Self {
            dimensions: dimensions.clone(),
            settings: settings.clone(),
            critic,
            critic_group: Group::adam("contrastive", contrastive, settings.critic_adam)?,
            features,
            quasimetric,
            quasimetric_group: Group::adam("quasimetric", parameters, settings.quasimetric_adam)?,
            dual,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
            states: StateMetric::of(backend, settings.states.as_ref(), dimensions)?,
        })
    }

    /// The critic.
    pub fn critic(&self) -> &Critic<B> {
        &self.critic
    }

    /// The contrastive loss of the critic (Eq. 8, `eq:contrastive_loss`), `[1, 1]`.
    pub fn contrastive_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let phi = self.critic.phi(&batch.state, &batch.action)?;
        self.settings.contrastive.of(&self.critic.pairs(&phi, &self.critic.psi(&batch.goal)?)?)
    }

    /// The distillation loss with its dual term (Eq. 20, `eq:distill_optimization`), `[1, 1]`. Adds
    /// `constraint`, `conservative` and `multiplier` to the metrics.
    pub fn distillation_loss(
        &self,
        batch: &Transitions<B>,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let Cmd2Settings { objective, goal_actions, margin, .. } = self.settings;
        // d((s_i, a_i), (g_j, a'_j)) with shuffled a'.
        let goal_action = goal_actions.of(batch)?;
        let from = self.features.state_action(&batch.state, &batch.action)?;
        let to = self.features.state_action(&batch.goal, &goal_action)?;
        let q = &self.quasimetric;
        let [from, to] = q.features_of_both(&from, &to)?;
        let distance = q.pairs(&from, &to)?;
        let distance = distance.scale(1.0 / self.settings.distance_divisor)?;
        // f(g_j, a, g_j) - f(s_i, a_i, g_j), Eq. 16, eq:dsd_upper_bound; which a does not matter at
        // the optimum.
        let reference = match objective {
            Objective::AuthorsCode => &batch.goal_action,
            Objective::PaperText | Objective::Plane => &batch.action,
        };
        let (source, sink) = ([&batch.state, &batch.action], [&batch.goal, reference]);
        let target = self.critic.successor_distance_pairs(source, sink)?.stop_gradient();
        objective.loss(&distance, &target, &self.dual.value()?, margin, metrics)
    }

    /// The policy's loss (Eq. 23, `eq:policy_loss`), `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, goal_action] = self.actor.goals(batch)?;
        let distance =
            |action: &Var<B>| self.distance_rows([&batch.state, action], [&goal, &goal_action]);
        self.actor.loss(batch, &goal, distance, metrics)
    }

    fn distance_rows(&self, from: [&Var<B>; 2], to: [&Var<B>; 2]) -> Result<Var<B>> {
        let q = &self.quasimetric;
        let from = q.features(&self.features.state_action(from[0], from[1])?)?;
        let to = q.features(&self.features.state_action(to[0], to[1])?)?;
        q.rows(&from, &to)?.scale(1.0 / self.settings.distance_divisor)
    }
}

/// `d((s, 0), (g, 0))`.
impl<B: Backend> StateDistance<B> for Cmd2<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.features(&self.features.without_action(state)?)
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(from, to)?.scale(1.0 / self.settings.distance_divisor)
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.pairs(from, to)?.scale(1.0 / self.settings.distance_divisor)
    }

    fn fixed(&self) -> Result<Option<FixedDistance>> {
        let Some(quasimetric) = self.quasimetric.fixed()? else { return Ok(None) };
        let scale = 1.0 / self.settings.distance_divisor;
        Ok(Some(FixedDistance::new(self.features.fixed_state()?, vec![quasimetric], scale)))
    }
}

impl<B: Backend> Learner<B> for Cmd2<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("contrastive_loss", &[&self.critic_group], |_| {
            self.contrastive_loss(batch)
        })?;
        let mut distilled = vec![&self.quasimetric_group];
        distilled.extend(self.dual.group());
        update.minimise("distillation_loss", &distilled, |metrics| {
            self.distillation_loss(batch, metrics)
        })?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })?;
        self.states.iter().try_for_each(|states| states.losses(batch, update))
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// The distilled `d((s, a), (g, a'))`.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        goal_action: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        self.distance_rows([state, action], [goal, goal_action]).map(Some)
    }

    fn without_action(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn states(&self) -> Option<&dyn StateDistance<B>> {
        self.states.as_ref().map(|states| states as &dyn StateDistance<B>)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        let mut groups = vec![&self.critic_group, &self.quasimetric_group];
        groups.extend(self.dual.group());
        groups.push(self.actor.group());
        groups.extend(self.states.as_ref().map(StateMetric::group));
        groups
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
