//! Goal-conditioned Q-learning: DDPG (Lillicrap et al. 2016) with goals taken in hindsight
//! (Andrychowicz et al. 2017).
//!
//! `Q(s, a, g)` regresses to `reward + discount Q'(s', pi(s', g), g)` with a slowly moving copy
//! `Q'`, for goals that were reached later in the same trajectory and, if so set, for goals of
//! other trajectories; the policy ascends `Q`, held to the data's actions.

use cm_learner::{
    Dimensions, FeatureSettings, Features, Group, Learner, Metrics, Transitions, Update,
};
use cm_nn::check::{Within, fraction};
use cm_nn::{AdamSettings, Backend, Mlp, MlpSettings, Parameters, Result, Var};
use cm_policy::{Actor, ActorSettings, BehaviourCloning, Extraction, PolicyGoals, PolicySettings};
use serde::{Deserialize, Serialize};

use crate::reward::{reached, squared_error};
use crate::{Reward, streams};

/// Settings of [`QLearning`]. The defaults are [`QLearningSettings::plane`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QLearningSettings {
    /// What the critic sees of states and actions.
    pub features: FeatureSettings,
    /// The critic's network; default 3 x 64, swish.
    pub network: MlpSettings,
    /// What a transition earns; default -1 until the goal is reached.
    pub reward: Reward,
    /// Discount, in `[0, 1)`; default 0.8.
    pub discount: f32,
    /// How much of the target critic stays at each step, in `[0, 1)`; default 0.99.
    pub target_decay: f32,
    /// Whether targets are moved into the range of values that the reward allows; default true.
    pub clip_target: bool,
    /// Whether every transition is also learned from with the goal of another row, taken not to be
    /// reached by it; default true.
    pub other_goals: bool,
    /// What moves the critic; default as the policy's ([`ActorSettings::plane`]).
    pub adam: AdamSettings,
    /// The policy.
    pub actor: ActorSettings,
}

impl Default for QLearningSettings {
    fn default() -> Self {
        Self::plane()
    }
}

impl QLearningSettings {
    /// The 2-D experiment with the reward that the paper describes: -1 until the goal is reached.
    /// As in the authors' script, the critic sees an action's coordinates once.
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            features: FeatureSettings::PLANE.with_actions_once(),
            network: actor.policy.network.clone(),
            reward: Reward::StepCost,
            discount: 0.8,
            target_decay: 0.99,
            clip_target: true,
            other_goals: true,
            adam: actor.adam,
            actor,
        }
    }

    /// The 2-D experiment as the authors' script computes it; see [`Reward::OneStepSuccess`].
    pub fn plane_authors_code() -> Self {
        Self { reward: Reward::OneStepSuccess, clip_target: false, ..Self::plane() }
    }

    /// The hindsight experience replay paper's settings: 3 x 64 ReLU, discount 0.98, target decay
    /// 0.95, Adam 1e-3, clipped targets, no behaviour cloning. (Its target policy, action penalty
    /// and input normalisation are not part of this learner.)
    pub fn original() -> Self {
        let network = MlpSettings { hidden: vec![64; 3], ..Default::default() };
        let adam = AdamSettings { learning_rate: 1e-3, ..Default::default() };
        Self {
            features: FeatureSettings::Raw,
            network: network.clone(),
            reward: Reward::StepCost,
            discount: 0.98,
            target_decay: 0.95,
            clip_target: true,
            other_goals: false,
            adam,
            actor: ActorSettings {
                policy: PolicySettings { network, ..Default::default() },
                adam,
                extraction: Extraction::DistanceMinimisation { bc_coef: 0.0 },
                behaviour_cloning: BehaviourCloning::Mse,
                mixup: None,
                goals: PolicyGoals::Own,
                sampled: false,
            },
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.features.check().within("features")?;
        self.network.check().within("network")?;
        fraction("discount", self.discount)?;
        fraction("target_decay", self.target_decay)?;
        self.adam.check().within("adam")?;
        self.actor.check().within("actor")
    }
}

/// Goal-conditioned Q-learning.
///
/// Parameters: `critic/...`, their slow copies `target/...`, and the policy's.
///
/// ```
/// use cm_baselines::{QLearning, QLearningSettings, Reward};
/// use cm_learner::{Dimensions, Learner};
/// use cm_nn::DfdxBackend;
///
/// let settings = QLearningSettings { reward: Reward::Success, ..QLearningSettings::plane() };
/// let dimensions = Dimensions::new(2, 2, 0..2)?;
/// let learner = QLearning::new(&DfdxBackend::new(0), &settings, &dimensions)?;
/// let parameters = learner.snapshot(0)?;
/// assert_eq!(parameters.get("target/linear_0/w"), parameters.get("critic/linear_0/w"));
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct QLearning<B: Backend> {
    settings: QLearningSettings,
    dimensions: Dimensions,
    features: Features<B>,
    critic: Mlp<B>,
    target: Mlp<B>,
    critic_group: Group<B>,
    target_group: Group<B>,
    actor: Actor<B>,
}

impl<B: Backend> QLearning<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &QLearningSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let inputs = 2 * features.state_columns() + features.action_columns();
        let [mut parameters, mut targets] = [0; 2].map(|_| Parameters::new(backend));
        let critic = Mlp::new(&mut parameters, "critic", inputs, &settings.network, 1)?;
        let target = Mlp::new(&mut targets, "target", inputs, &settings.network, 1)?;
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            features,
            critic,
            target,
            target_group: Group::average("target", targets, &parameters, settings.target_decay)?,
            critic_group: Group::adam("critic", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// `mean (Q(s, a, g) - target)^2` with `target = reward + discount Q'(s', pi(s', g), g)` unless
    /// `s'` reaches `g`; `[1, 1]`.
    pub fn critic_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let Self { settings, .. } = self;
        let Rows { state, action, next_state, goal, reached } = self.rows(batch)?;
        let policy = self.actor.policy();
        let next_actions = policy.forward(&next_state, &policy.goal(&goal)?)?;
        let next_action = match settings.actor.sampled {
            true => next_actions.sample(streams::Q_NEXT_ACTION)?,
            false => next_actions.mode()?,
        };
        let next_value = self.value_by(&self.target, &next_state, &next_action, &goal)?;
        let mut target = settings.reward.target(&reached, &next_value, settings.discount)?;
        if settings.clip_target {
            let [low, high] = settings.reward.value_range(settings.discount);
            target = target.clamp(low, high)?;
        }
        squared_error(&self.action_value(&state, &action, &goal)?, &target)
    }

    /// The policy's loss, `[1, 1]`: minus the value of its action, held to the data.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let distance = |action: &Var<B>| self.action_value(&batch.state, action, &goal)?.neg();
        self.actor.loss(batch, &goal, distance, metrics)
    }

    /// `Q(s, a, g)` row by row, `[n, 1]`.
    pub fn action_value(&self, state: &Var<B>, action: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.value_by(&self.critic, state, action, goal)
    }

    fn value_by(
        &self,
        critic: &Mlp<B>,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
    ) -> Result<Var<B>> {
        let (pair, goal) = (self.features.state_action(state, action)?, self.features.state(goal)?);
        critic.forward(&Var::concat_columns(&[&pair, &goal])?)
    }

    /// The batch, followed by itself with other rows' goals if so set.
    fn rows(&self, batch: &Transitions<B>) -> Result<Rows<B>> {
        let own = Rows {
            state: batch.state.clone(),
            action: batch.action.clone(),
            next_state: batch.next_state.clone(),
            goal: batch.goal.clone(),
            reached: reached(batch)?,
        };
        if !self.settings.other_goals {
            return Ok(own);
        }
        let order = Var::permutation(batch.goal.backend(), batch.goal.rows(), streams::Q_GOALS)?;
        let twice = |rows: &Var<B>| Var::concat_rows(&[rows, rows]);
        Ok(Rows {
            state: twice(&own.state)?,
            action: twice(&own.action)?,
            next_state: twice(&own.next_state)?,
            goal: Var::concat_rows(&[&own.goal, &own.goal.gather_rows(&order)?])?,
            reached: Var::concat_rows(&[&own.reached, &own.reached.scale(0.0)?])?,
        })
    }
}

/// Transitions with goals, and whether each reaches its goal.
struct Rows<B: Backend> {
    state: Var<B>,
    action: Var<B>,
    next_state: Var<B>,
    goal: Var<B>,
    reached: Var<B>,
}

impl<B: Backend> Learner<B> for QLearning<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("critic_loss", &[&self.critic_group], |_| self.critic_loss(batch))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `-Q(s, a, g)`; the goal's action plays no part.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        Ok(Some(self.action_value(state, action, goal)?.neg()?))
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![&self.critic_group, &self.target_group, self.actor.group()]
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
