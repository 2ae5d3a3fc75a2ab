//! Implicit Q-learning (Kostrikov, Nair and Levine 2022) with goals: the value of the best actions
//! *in the data*, and a policy that repeats them.
//!
//! Nothing here asks for the value of an action that was not taken, so nothing is extrapolated:
//! `V(s, g)` is an upper expectile of `Q(s, a, g)` over the actions taken at `s`, `Q(s, a, g)`
//! regresses to `reward + discount V(s', g)`, and the policy imitates the data with weights that
//! grow with the advantage `Q - V`. Equation numbers are those of the IQL paper.

use cm_learner::{
    Dimensions, FeatureSettings, Features, Group, Learner, Metrics, Transitions, Update,
};
use cm_nn::check::{Within, fraction, not_negative, positive, require};
use cm_nn::{AdamSettings, Backend, Decay, Mlp, MlpSettings, Over, Parameters, Result, Twin, Var};
use cm_policy::{Actor, ActorSettings, BehaviourCloning, PolicySettings, advantage_weight};
use serde::{Deserialize, Serialize};

use crate::Reward;
use crate::reward::{reached, squared_error};

/// The expectile loss of Eq. 5: `mean |expectile - 1(u < 0)| u^2`.
///
/// Its minimiser over `v` with `u = x - v` is the mean of `x` at expectile 1/2 and tends to the
/// largest `x` at 1.
///
/// ```
/// use cm_baselines::expectile_loss;
/// use cm_nn::{DfdxBackend, Var};
///
/// let u = Var::new(&DfdxBackend::new(0), [2, 1], vec![2.0, -2.0])?;
/// assert_eq!(expectile_loss(&u, 0.75)?.item()?, (0.75 * 4.0 + 0.25 * 4.0) / 2.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub fn expectile_loss<B: Backend>(u: &Var<B>, expectile: f32) -> Result<Var<B>> {
    let above = u.relu()?.square()?.scale(expectile)?;
    let below = u.neg()?.relu()?.square()?.scale(1.0 - expectile)?;
    above.add(&below)?.mean(Over::All)
}

/// Settings of [`Iql`]. The defaults are [`IqlSettings::original`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IqlSettings {
    /// What the networks of values see of states and actions; default as they are.
    pub features: FeatureSettings,
    /// Hidden layers of `V(s, g)` and of both `Q(s, a, g)`; default 2 x 256, ReLU.
    pub network: MlpSettings,
    /// What a transition earns; default -1 until the goal is reached.
    pub reward: Reward,
    /// Discount, in `[0, 1)`; default 0.99.
    pub discount: f32,
    /// Which expectile of the actions' values is the state's value, in `(0, 1)`: 1/2 is the mean, 1
    /// the largest. Default 0.7.
    pub expectile: f32,
    /// How much of the target critics stays at each step, in `[0, 1)`; default 0.995.
    pub target_decay: f32,
    /// What moves `V`; default learning rate 3e-4.
    pub value_adam: AdamSettings,
    /// What moves both `Q`; default learning rate 3e-4.
    pub critic_adam: AdamSettings,
    /// How strongly the policy prefers actions of large advantage; default 3.
    pub advantage_sharpness: f32,
    /// The largest weight of a row in the policy's loss; default 100.
    pub largest_weight: f32,
    /// The policy; default 2 x 256, ReLU.
    pub policy: PolicySettings,
    /// How the policy is pulled to an action; default minus the log-density.
    pub behaviour_cloning: BehaviourCloning,
    /// What moves the policy; default learning rate 3e-4.
    pub policy_adam: AdamSettings,
}

impl Default for IqlSettings {
    fn default() -> Self {
        Self::original()
    }
}

impl IqlSettings {
    /// The IQL paper's settings for locomotion. The policy's learning rate falls to 0 along a
    /// cosine, over the 1,000,000 steps of its runs.
    pub fn original() -> Self {
        let network = MlpSettings { hidden: vec![256; 2], ..Default::default() };
        let adam = AdamSettings { learning_rate: 3e-4, ..Default::default() };
        Self {
            features: FeatureSettings::Raw,
            network: network.clone(),
            reward: Reward::StepCost,
            discount: 0.99,
            expectile: 0.7,
            target_decay: 0.995,
            value_adam: adam,
            critic_adam: adam,
            advantage_sharpness: 3.0,
            largest_weight: 100.0,
            policy: PolicySettings { network, ..Default::default() },
            behaviour_cloning: BehaviourCloning::Mle,
            policy_adam: AdamSettings {
                decay: Decay::Cosine { steps: 1_000_000, to: 0.0 },
                ..adam
            },
        }
    }

    /// The IQL paper's settings for AntMaze, where pieces of trajectories must be joined: expectile
    /// 0.9, sharpness 10.
    pub fn antmaze() -> Self {
        Self { expectile: 0.9, advantage_sharpness: 10.0, ..Self::original() }
    }

    /// The 2-D experiment, which has no IQL in the authors' script: its networks, discount and
    /// learning rates, the expectile of AntMaze.
    pub fn plane() -> Self {
        let ActorSettings { policy, adam, behaviour_cloning, .. } = ActorSettings::plane();
        Self {
            features: FeatureSettings::PLANE,
            network: policy.network.clone(),
            discount: 0.8,
            target_decay: 0.99,
            value_adam: adam,
            critic_adam: adam,
            policy,
            behaviour_cloning,
            policy_adam: adam,
            ..Self::antmaze()
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.features.check().within("features")?;
        self.network.check().within("network")?;
        fraction("discount", self.discount)?;
        let expectile = self.expectile;
        require(expectile > 0.0 && expectile < 1.0, "expectile", "in (0, 1)", expectile)?;
        fraction("target_decay", self.target_decay)?;
        not_negative("advantage_sharpness", self.advantage_sharpness)?;
        positive("largest_weight", self.largest_weight)?;
        self.value_adam.check().within("value_adam")?;
        self.critic_adam.check().within("critic_adam")?;
        self.policy_adam.check().within("policy_adam")?;
        self.actor().check()
    }

    /// The policy with behaviour cloning, which the advantage weighs.
    fn actor(&self) -> ActorSettings {
        ActorSettings {
            policy: self.policy.clone(),
            adam: self.policy_adam,
            behaviour_cloning: self.behaviour_cloning,
            mixup: None,
            ..Default::default()
        }
    }
}

/// Implicit Q-learning.
///
/// Parameters: `value/...`, `critic_0/...` and `critic_1/...`, their slow copies `target_0/...` and
/// `target_1/...`, and the policy's.
///
/// ```
/// use cm_baselines::{Iql, IqlSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let settings = IqlSettings { expectile: 0.95, ..IqlSettings::plane() };
/// let iql = Iql::new(&backend, &settings, &Dimensions::new(2, 2, 0..2)?)?;
/// let [state, goal] = [[0.0, 0.0], [3.0, 4.0]].map(|x| Var::new(&backend, [1, 2], x.to_vec()));
/// assert_eq!(iql.value(&state?, &goal?)?.shape(), [1, 1]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Iql<B: Backend> {
    settings: IqlSettings,
    dimensions: Dimensions,
    features: Features<B>,
    value: Mlp<B>,
    critics: Twin<Mlp<B>>,
    targets: Twin<Mlp<B>>,
    value_group: Group<B>,
    critic_group: Group<B>,
    target_group: Group<B>,
    actor: Actor<B>,
}

impl<B: Backend> Iql<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &IqlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let (state, action) = (features.state_columns(), features.action_columns());
        let network = &settings.network;
        let [mut value_parameters, mut parameters, mut target_parameters] =
            [0; 3].map(|_| Parameters::new(backend));
        let value = Mlp::new(&mut value_parameters, "value", 2 * state, network, 1)?;
        let twin = |parameters: &mut Parameters<B>, name| {
            Twin::new(name, |name| Mlp::new(parameters, name, 2 * state + action, network, 1))
        };
        let critics = twin(&mut parameters, "critic")?;
        let targets = twin(&mut target_parameters, "target")?;
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            features,
            value,
            critics,
            targets,
            target_group: Group::average(
                "target",
                target_parameters,
                &parameters,
                settings.target_decay,
            )?,
            value_group: Group::adam("value", value_parameters, settings.value_adam)?,
            critic_group: Group::adam("critic", parameters, settings.critic_adam)?,
            actor: Actor::new(backend, &settings.actor(), dimensions)?,
        })
    }

    /// Eq. 5: the expectile loss of `Q'(s, a, g) - V(s, g)`, `[1, 1]`.
    pub fn value_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        expectile_loss(&self.advantage(batch)?, self.settings.expectile)
    }

    /// Eq. 6: `mean (Q(s, a, g) - reward - discount V(s', g))^2`, with no next value where `s'`
    /// reaches `g`, over both critics; `[1, 1]`.
    pub fn critic_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let next_value = self.value(&batch.next_state, &batch.goal)?;
        let Self { settings, .. } = self;
        let target = settings.reward.target(&reached(batch)?, &next_value, settings.discount)?;
        let input = self.critic_input(&batch.state, &batch.action, &batch.goal)?;
        let error = |critic: &Mlp<B>| squared_error(&critic.forward(&input)?, &target);
        self.critics.join(error, |first, second| first.add(second))
    }

    /// Eq. 7: behaviour cloning weighted by `min(largest, exp(sharpness (Q' - V)))`, `[1, 1]`. Adds
    /// the mean weight to the metrics.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let IqlSettings { advantage_sharpness, largest_weight, .. } = self.settings;
        let advantage = self.advantage(batch)?;
        let weight = advantage_weight(&advantage, advantage_sharpness, largest_weight)?;
        metrics.push(("weight", weight.mean(Over::All)?));
        weight.mul(&self.actor.behaviour_cloning(batch)?)?.mean(Over::All)
    }

    /// `V(s, g)` row by row, `[n, 1]`.
    pub fn value(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let (state, goal) = (self.features.state(state)?, self.features.state(goal)?);
        self.value.forward(&Var::concat_columns(&[&state, &goal])?)
    }

    /// `Q'(s, a, g)` row by row, `[n, 1]`: the smaller one of the two target critics.
    pub fn action_value(&self, state: &Var<B>, action: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let input = self.critic_input(state, action, goal)?;
        self.targets.join(|critic| critic.forward(&input), |first, second| first.minimum(second))
    }

    /// `Q'(s, a, g) - V(s, g)` of the actions taken.
    fn advantage(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let taken = self.action_value(&batch.state, &batch.action, &batch.goal)?;
        taken.sub(&self.value(&batch.state, &batch.goal)?)
    }

    fn critic_input(&self, state: &Var<B>, action: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let (pair, goal) = (self.features.state_action(state, action)?, self.features.state(goal)?);
        Var::concat_columns(&[&pair, &goal])
    }
}

impl<B: Backend> Learner<B> for Iql<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("value_loss", &[&self.value_group], |_| self.value_loss(batch))?;
        update.minimise("critic_loss", &[&self.critic_group], |_| self.critic_loss(batch))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `-Q'(s, a, g)`; the goal's action plays no part.
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
        vec![&self.value_group, &self.critic_group, &self.target_group, self.actor.group()]
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
