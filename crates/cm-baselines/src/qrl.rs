//! Quasimetric RL (Wang, Torralba, Isola and Zhang 2023): the largest quasimetric in which no
//! transition is longer than its cost.
//!
//! In a deterministic world the optimal distance `d*(s, g)`, the least cost of getting from `s` to
//! `g`, is the largest quasimetric with `d(s, s') <= cost` for every transition. Sec. 3.2 of the
//! QRL paper makes that a constrained problem over states and goals drawn apart,
//!
//! > maximise `E phi(d(s, g))` subject to `E max(0, d(s, s') - cost)^2 <= margin`,
//!
//! and solves it by ascent on a multiplier. Sec. 3.4 adds a model `T` of where an action leads *in
//! the metric's space*, held to `T(s, a) ~ s'` by the squared distances between them both ways; a
//! policy is then moved to actions whose outcome is near the goal.

use cm_learner::{
    Dimensions, Dual, DualOptimiser, FeatureSettings, Features, Group, Learner, Metrics,
    StateDistance, Transitions, Update,
};
use cm_nn::check::{Within, finite, not_negative, positive, require};
use cm_nn::{
    AdamSettings, Backend, Head, Mlp, MlpSettings, Over, Parameters, Quasimetric,
    QuasimetricSettings, Reduction, Result, Var,
};
use cm_policy::{Actor, ActorSettings, BehaviourCloning, Extraction, PolicyGoals, PolicySettings};
use serde::{Deserialize, Serialize};

use crate::streams;

/// `-E phi(d)`, which pushes states and goals apart:
/// `mean softplus(sharpness (offset - d)) / sharpness`.
///
/// The authors' `100 softplus(5 - d / 100)` is offset 500 and sharpness 0.01.
///
/// ```
/// use cm_baselines::push_loss;
/// use cm_nn::{DfdxBackend, Var};
///
/// let distance = Var::full(&DfdxBackend::new(0), [4, 1], 500.0)?;
/// let loss = push_loss(&distance, 500.0, 0.01)?.item()?;
/// assert!((loss - 100.0 * 2.0_f32.ln()).abs() < 1e-3);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn push_loss<B: Backend>(distance: &Var<B>, offset: f32, sharpness: f32) -> Result<Var<B>> {
    let near = distance.affine(-sharpness, sharpness * offset)?.softplus()?;
    near.mean(Over::All)?.scale(1.0 / sharpness)
}

/// `E max(0, d(s, s') - cost)^2`, by how much transitions are too long.
pub fn transition_excess<B: Backend>(distance: &Var<B>, step_cost: f32) -> Result<Var<B>> {
    distance.affine(1.0, -step_cost)?.relu()?.square()?.mean(Over::All)
}

/// `E (d(T(s, a), s')^2 + d(s', T(s, a))^2) / 2`, how far the predicted outcome is from the real
/// one, there and back.
pub fn latent_transition_loss<B: Backend>(there: &Var<B>, back: &Var<B>) -> Result<Var<B>> {
    there.square()?.add(&back.square()?)?.mean(Over::All)?.scale(0.5)
}

/// The Lagrangian `push + multiplier (excess - margin)`, to be minimised over the metric and
/// maximised over the multiplier.
///
/// Both happen by descent on the one result: the metric sees `push + multiplier * excess` with the
/// multiplier constant, the multiplier sees `multiplier (margin - excess)` with the excess
/// constant.
pub fn lagrangian<B: Backend>(
    push: &Var<B>,
    excess: &Var<B>,
    multiplier: &Var<B>,
    margin: f32,
) -> Result<Var<B>> {
    let primal = push.add(&multiplier.stop_gradient().mul(excess)?)?;
    let slack = excess.stop_gradient().affine(-1.0, margin)?;
    primal.add(&multiplier.mul(&slack)?)
}

/// Settings of [`Qrl`]. The defaults are [`QrlSettings::plane`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QrlSettings {
    /// What the metric sees of states and actions.
    pub features: FeatureSettings,
    /// The quasimetric and its networks.
    pub quasimetric: QuasimetricSettings,
    /// How the outcome of an action is predicted; default by the metric's own network.
    pub transition: TransitionSettings,
    /// Distances beyond this are hardly pushed any further; default 500.
    pub push_offset: f32,
    /// How suddenly the push stops there: `phi(d) = -softplus(sharpness (offset - d)) / sharpness`;
    /// default 0.01.
    pub push_sharpness: f32,
    /// Cost of a transition; default 1.
    pub step_cost: f32,
    /// Mean squared excess of transitions over their cost that is allowed; default 0.05.
    pub margin: f32,
    /// Weight of the latent transition loss; default 1.
    pub transition_weight: f32,
    /// The multiplier is the softplus of a parameter that starts here; default 1.
    pub dual_start: f32,
    /// What moves that parameter; default SGD with learning rate 0.01.
    pub dual_optimiser: DualOptimiser,
    /// What moves the metric and the transition model; default learning rate 1e-3, gradients cut to
    /// length 1.
    pub adam: AdamSettings,
    /// The policy.
    pub actor: ActorSettings,
}

/// How QRL predicts the outcome of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransitionSettings {
    /// As in the authors' script: the metric's network takes a state and an action, the action
    /// being zero for "just this state", and what it makes of `(s, a)` is the prediction.
    ActionInput,
    /// As in Sec. 3.4 of the QRL paper: a state encoder `f` before the metric, and
    /// `T(s, a) = f(s) + residual(f(s), a)`.
    Latent {
        /// Columns of `f`.
        size: usize,
        /// The encoder's hidden layers.
        encoder: MlpSettings,
        /// The residual's hidden layers.
        residual: MlpSettings,
    },
}

impl Default for QrlSettings {
    fn default() -> Self {
        Self::plane()
    }
}

impl QrlSettings {
    /// The 2-D experiment as the authors' script runs it.
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        let network = actor.policy.network.clone();
        Self {
            features: FeatureSettings::PLANE,
            quasimetric: QuasimetricSettings { separate: true, network, ..Default::default() },
            transition: TransitionSettings::ActionInput,
            push_offset: 500.0,
            push_sharpness: 0.01,
            step_cost: 1.0,
            margin: 0.05,
            transition_weight: 1.0,
            dual_start: 1.0,
            dual_optimiser: DualOptimiser::Sgd { learning_rate: 0.01 },
            // The gradient that decides how much all are clipped, see `ActorSettings::plane`.
            adam: AdamSettings { learning_rate: 1e-3, clip: Some(1.0), ..Default::default() },
            actor,
        }
    }

    /// The offline maze runs of the QRL paper's own code: IQE over 2048 features in 64 groups,
    /// 1024-wide networks, margin 0.25 squared, a multiplier that starts at 0.01, behaviour cloning
    /// by log-density with weight 0.05 to 1.
    pub fn original() -> Self {
        let network = |layers| MlpSettings { hidden: vec![1024; layers], ..Default::default() };
        let adam = |learning_rate| AdamSettings { learning_rate, ..Default::default() };
        let head = Head::Iqe { groups: 64, reduction: Reduction::MAX_MEAN };
        Self {
            features: FeatureSettings::Raw,
            quasimetric: QuasimetricSettings {
                head,
                features: 2048,
                separate: false,
                network: network(2),
            },
            transition: TransitionSettings::Latent {
                size: 128,
                encoder: network(3),
                residual: network(3),
            },
            push_offset: 15.0,
            push_sharpness: 0.1,
            step_cost: 1.0,
            margin: 0.0625,
            transition_weight: 1.0,
            dual_start: 0.01_f32.exp_m1().ln(),
            dual_optimiser: DualOptimiser::Adam(adam(0.01)),
            adam: adam(5e-4),
            actor: ActorSettings {
                policy: PolicySettings { network: network(4), ..Default::default() },
                adam: adam(3e-5),
                extraction: Extraction::DistanceMinimisation { bc_coef: 0.05 / 1.05 },
                behaviour_cloning: BehaviourCloning::Mle,
                mixup: None,
                goals: PolicyGoals::Permuted,
                sampled: true,
            },
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.features.check().within("features")?;
        self.quasimetric.check().within("quasimetric")?;
        if let TransitionSettings::Latent { size, encoder, residual } = &self.transition {
            require(*size > 0, "transition.latent.size", "positive", size)?;
            encoder.check().within("transition.latent.encoder")?;
            residual.check().within("transition.latent.residual")?;
        }
        not_negative("push_offset", self.push_offset)?;
        positive("push_sharpness", self.push_sharpness)?;
        positive("step_cost", self.step_cost)?;
        not_negative("margin", self.margin)?;
        not_negative("transition_weight", self.transition_weight)?;
        finite("dual_start", self.dual_start)?;
        self.dual_optimiser.check().within("dual_optimiser")?;
        self.adam.check().within("adam")?;
        self.actor.check().within("actor")
    }
}

/// Quasimetric RL.
///
/// Parameters: `quasimetric/...`, for a latent transition also `encoder/...` and `transition/...`,
/// `dual`, and the policy's.
///
/// ```
/// use cm_baselines::{Qrl, QrlSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let qrl = Qrl::new(&backend, &QrlSettings::plane(), &Dimensions::new(2, 2, 0..2)?)?;
/// let here = Var::new(&backend, [1, 2], vec![0.0, 0.0])?;
/// let there = Var::new(&backend, [1, 2], vec![3.0, 4.0])?;
/// assert_eq!(qrl.state_distance(&here, &here)?.item()?, 0.0);
/// assert!(qrl.state_distance(&here, &there)?.item()? > 0.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Qrl<B: Backend> {
    settings: QrlSettings,
    dimensions: Dimensions,
    features: Features<B>,
    quasimetric: Quasimetric<B>,
    latent: Option<Latent<B>>,
    dual: Dual<B>,
    critic_group: Group<B>,
    actor: Actor<B>,
}

/// The networks of [`TransitionSettings::Latent`].
struct Latent<B: Backend> {
    encoder: Mlp<B>,
    residual: Mlp<B>,
}

impl<B: Backend> Qrl<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &QrlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let (state, action) = (features.state_columns(), features.action_columns());
        let mut parameters = Parameters::new(backend);
        let (latent, columns) = match &settings.transition {
            TransitionSettings::ActionInput => (None, state + action),
            TransitionSettings::Latent { size, encoder, residual } => {
                let encoder = Mlp::new(&mut parameters, "encoder", state, encoder, *size)?;
                let inputs = size + action;
                let residual = Mlp::new(&mut parameters, "transition", inputs, residual, *size)?;
                (Some(Latent { encoder, residual }), *size)
            }
        };
        let quasimetric =
            Quasimetric::new(&mut parameters, "quasimetric", columns, &settings.quasimetric)?;
        let QrlSettings { dual_start, dual_optimiser, .. } = *settings;
        let dual = Dual::new(&mut parameters, "dual", dual_start, dual_optimiser)?;
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            features,
            quasimetric,
            latent,
            dual,
            critic_group: Group::adam("critic", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// The loss of the metric, the transition model and the multiplier, `[1, 1]`. Adds its terms to
    /// the metrics.
    pub fn critic_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let Self { settings, quasimetric, .. } = self;
        let order = Var::permutation(batch.goal.backend(), batch.goal.rows(), streams::QRL_GOALS)?;
        let state = self.place(&batch.state)?;
        let goal = self.place(&batch.goal.gather_rows(&order)?)?;
        let next_state = self.place(&batch.next_state)?;
        let outcome = self.outcome(&batch.state, &batch.action)?;

        // Sec. 3.2: push states and goals apart, hold transitions to their cost.
        let distance = quasimetric.rows(&state, &goal)?;
        let push = push_loss(&distance, settings.push_offset, settings.push_sharpness)?;
        let transition = quasimetric.rows(&state, &next_state)?;
        let excess = transition_excess(&transition, settings.step_cost)?;
        let multiplier = self.dual.value()?.softplus()?;
        let lagrangian = lagrangian(&push, &excess, &multiplier, settings.margin)?;

        // Sec. 3.4: the outcome of an action is where it led.
        let there = quasimetric.rows(&outcome, &next_state)?;
        let back = quasimetric.rows(&next_state, &outcome)?;
        let prediction = latent_transition_loss(&there, &back)?;

        let terms = [
            ("distance", distance.mean(Over::All)?),
            ("push", push),
            ("excess", excess),
            ("multiplier", multiplier),
            ("transition_loss", prediction.clone()),
        ];
        metrics.extend(terms.map(|(name, term)| (name, term.stop_gradient())));
        lagrangian.add(&prediction.scale(settings.transition_weight)?)
    }

    /// The policy's loss, `[1, 1]`: the distance from the outcome of its action to the goal, held
    /// to the data.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let place = self.place(&goal)?;
        let distance =
            |action: &Var<B>| self.quasimetric.rows(&self.outcome(&batch.state, action)?, &place);
        self.actor.loss(batch, &goal, distance, metrics)
    }

    /// `d(s, g)` row by row, `[n, 1]`: the cost of the way from `s` to `g`.
    pub fn state_distance(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(&self.place(state)?, &self.place(goal)?)
    }

    /// What the metric compares of a state.
    fn place(&self, state: &Var<B>) -> Result<Var<B>> {
        let Some(Latent { encoder, .. }) = &self.latent else {
            let shape = [state.rows(), self.dimensions.action()];
            return self.outcome(state, &Var::full(state.backend(), shape, 0.0)?);
        };
        self.quasimetric.features(&encoder.forward(&self.features.state(state)?)?)
    }

    /// What the metric compares of the predicted outcome of an action.
    fn outcome(&self, state: &Var<B>, action: &Var<B>) -> Result<Var<B>> {
        let Some(Latent { encoder, residual }) = &self.latent else {
            return self.quasimetric.features(&self.features.state_action(state, action)?);
        };
        let latent = encoder.forward(&self.features.state(state)?)?;
        let action = self.features.action(action)?;
        let change = residual.forward(&Var::concat_columns(&[&latent, &action])?)?;
        self.quasimetric.features(&latent.add(&change)?)
    }
}

/// The metric of the method itself.
impl<B: Backend> StateDistance<B> for Qrl<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        self.place(state)
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(from, to)
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.pairs(from, to)
    }
}

impl<B: Backend> Learner<B> for Qrl<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        let mut critic = vec![&self.critic_group];
        critic.extend(self.dual.group());
        update.minimise("critic_loss", &critic, |metrics| self.critic_loss(batch, metrics))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `d(T(s, a), g)`, what remains to the goal after the action; the goal's action plays no part.
    /// With
    /// [`TransitionSettings::ActionInput`] and a zero action it is [`state_distance`](Qrl::state_distance).
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        Ok(Some(self.quasimetric.rows(&self.outcome(state, action)?, &self.place(goal)?)?))
    }

    fn states(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        let mut groups = vec![&self.critic_group];
        groups.extend(self.dual.group());
        groups.push(self.actor.group());
        groups
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
