//! HIQL, hierarchical implicit Q-learning (Park et al. 2023), as in OGBench: one policy chooses
//! subgoals, another walks to them, and both imitate what led to better states.
//!
//! A goal is seen through `rho(s, g)`, ten numbers of a fixed length that are learned with the
//! values; subgoals are such numbers too.

use cm_learner::{Dimensions, Group, Learner, Metrics, Subgoals, Transitions, Update};
use cm_nn::check::{Within, not_negative, require};
use cm_nn::{AdamSettings, Backend, Error, Mlp, Over, Parameters, Result, Var};
use cm_policy::{Policy, PolicyKind, PolicySettings, PolicySizes, advantage_weight};
use serde::{Deserialize, Serialize};

use crate::GoalValueSettings;
use crate::goal_values::Values;

/// Weights of advantage-weighted regression stop growing here.
const LARGEST_WEIGHT: f32 = 100.0;
/// Added to the length that `rho` is divided by.
const LENGTH_EPSILON: f32 = 1e-8;

/// Settings of [`Hiql`]. The default is [`HiqlSettings::ogbench`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HiqlSettings {
    /// How values are learned; `rho` has the same hidden layers.
    pub value: GoalValueSettings,
    /// How many numbers `rho` is; positive.
    pub representation: usize,
    /// Both policies, which are unit-Gaussian.
    pub policy: PolicySettings,
    /// What moves them.
    pub adam: AdamSettings,
    /// How strongly the policy of single actions prefers what led to better states; not negative.
    pub low_sharpness: f32,
    /// The same of the policy of subgoals.
    pub high_sharpness: f32,
}

impl Default for HiqlSettings {
    fn default() -> Self {
        Self::ogbench()
    }
}

impl HiqlSettings {
    /// OGBench's: expectile 0.7, ten numbers, sharpness 3.
    pub fn ogbench() -> Self {
        let value = GoalValueSettings { expectile: 0.7, ..Default::default() };
        Self {
            representation: 10,
            policy: PolicySettings::ogbench(),
            adam: value.adam,
            low_sharpness: 3.0,
            high_sharpness: 3.0,
            value,
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.value.check().within("value")?;
        require(self.representation > 0, "representation", "positive", self.representation)?;
        self.policy.check().within("policy")?;
        let kind = self.policy.kind;
        let unbounded = kind == PolicyKind::UnitGaussian;
        let expected = "`unit-gaussian`, for subgoals are not bounded";
        require(unbounded, "policy.kind", expected, format_args!("{kind:?}"))?;
        self.adam.check().within("adam")?;
        not_negative("low_sharpness", self.low_sharpness)?;
        not_negative("high_sharpness", self.high_sharpness)
    }
}

/// Hierarchical implicit Q-learning. Learns from batches with subgoals.
///
/// Parameters: `representation/...`, `value_0/...`, `value_1/...`, their slow copies
/// `target_0/...`, `target_1/...`, `low/...` and `high/...`.
///
/// ```
/// use cm_baselines::{Hiql, HiqlSettings};
/// use cm_learner::{Dimensions, Learner};
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let hiql = Hiql::new(&backend, &HiqlSettings::ogbench(), &Dimensions::new(2, 2, 0..2)?)?;
/// let [state, goal] = [0.0, 3.0].map(|x| Var::full(&backend, [5, 2], x));
/// assert_eq!(hiql.act(&state?, &goal?)?.shape(), [5, 2]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Hiql<B: Backend> {
    settings: HiqlSettings,
    dimensions: Dimensions,
    representation: Mlp<B>,
    values: Values<B>,
    low: Policy<B>,
    high: Policy<B>,
    representation_group: Group<B>,
    low_group: Group<B>,
    high_group: Group<B>,
}

impl<B: Backend> Hiql<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &HiqlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let HiqlSettings { value, representation: size, policy, adam, .. } = settings;
        let (state, action) = (dimensions.state(), dimensions.action());
        let [mut of_representation, mut of_low, mut of_high] =
            [0; 3].map(|_| Parameters::new(backend));
        let network = &value.network;
        let representation =
            Mlp::new(&mut of_representation, "representation", 2 * state, network, *size)?;
        let low = PolicySizes { state, goal: *size, action };
        let goal = dimensions.goal_columns().len();
        let high = PolicySizes { state, goal, action: *size };
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            representation,
            values: Values::new(backend, value, state + size)?,
            low: Policy::sized(&mut of_low, "low", policy, low)?,
            high: Policy::sized(&mut of_high, "high", policy, high)?,
            representation_group: Group::adam("representation", of_representation, value.adam)?,
            low_group: Group::adam("low", of_low, *adam)?,
            high_group: Group::adam("high", of_high, *adam)?,
        })
    }

    /// `rho(s, g)`, of length `sqrt(size)`: `[n, size]`.
    pub fn represent(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let seen = Var::concat_columns(&[state, goal])?;
        self.of_length(&self.representation.forward(&seen)?)
    }

    /// The loss of the values and of `rho`, `[1, 1]`. Slow copies see the same `rho`, which no
    /// gradient reaches through them.
    pub fn value_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let here = self.seen(&batch.state, &batch.goal)?;
        let next = self.seen(&batch.next_state, &batch.goal)?;
        self.values.loss(batch, &here, &next)
    }

    /// The loss of the policy of single actions, `[1, 1]`: behaviour cloning towards the low
    /// subgoal, weighted by `min(100, exp(sharpness (V(s', g) - V(s, g))))`.
    pub fn low_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let Subgoals { low: goal, .. } = subgoals(batch)?;
        let (here, next) = (self.seen(&batch.state, goal)?, self.seen(&batch.next_state, goal)?);
        let advantage = self.values.advantage(&here, &next)?;
        let representation = self.represent(&batch.state, goal)?.stop_gradient();
        let actions = self.low.forward(&batch.state, &representation)?;
        let density = actions.log_density(&batch.action)?;
        weigh(&advantage, self.settings.low_sharpness, &density, "low_weight", metrics)
    }

    /// The loss of the policy of subgoals, `[1, 1]`: cloning of `rho(s, high subgoal)`, weighted by
    /// how much better that is than the state for the goal.
    pub fn high_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let (Subgoals { high: target, .. }, goal) = (subgoals(batch)?, batch.actor_goal());
        let advantage =
            self.values.advantage(&self.seen(&batch.state, goal)?, &self.seen(target, goal)?)?;
        let wanted = self.represent(&batch.state, target)?.stop_gradient();
        let seen = goal.slice_columns(self.dimensions.goal_columns())?;
        let density = self.high.forward(&batch.state, &seen)?.log_density(&wanted)?;
        weigh(&advantage, self.settings.high_sharpness, &density, "high_weight", metrics)
    }

    /// `V(s, g)` row by row, `[n, 1]`: the mean of both networks.
    pub fn value(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.values.mean(&self.seen(state, goal)?)
    }

    /// What values see of a state and a goal.
    fn seen(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        Var::concat_columns(&[state, &self.represent(state, goal)?])
    }

    fn of_length(&self, x: &Var<B>) -> Result<Var<B>> {
        let length = (self.settings.representation as f32).sqrt();
        x.l2_normalize(LENGTH_EPSILON)?.scale(length)
    }
}

/// Minus the mean of the weighted log-densities, `[1, 1]`.
fn weigh<B: Backend>(
    advantage: &Var<B>,
    sharpness: f32,
    density: &Var<B>,
    name: &'static str,
    metrics: &mut Metrics<B>,
) -> Result<Var<B>> {
    let weight = advantage_weight(advantage, sharpness, LARGEST_WEIGHT)?;
    metrics.push((name, weight.mean(Over::All)?));
    weight.mul(density)?.mean(Over::All)?.neg()
}

fn subgoals<B: Backend>(batch: &Transitions<B>) -> Result<&Subgoals<B>> {
    let found = batch.actor_goals.as_ref().and_then(|goals| goals.subgoals.as_ref());
    found.ok_or_else(|| Error::Shape {
        operation: "batch",
        expected: "subgoals, which HIQL learns from".to_owned(),
        found: "none".to_owned(),
    })
}

impl<B: Backend> Learner<B> for Hiql<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        let values = [&self.values.group, &self.representation_group];
        update.minimise("value_loss", &values, |_| self.value_loss(batch))?;
        update.minimise("low_loss", &[&self.low_group], |metrics| self.low_loss(batch, metrics))?;
        update.minimise("high_loss", &[&self.high_group], |metrics| self.high_loss(batch, metrics))
    }

    /// The low policy's action towards the subgoal that the high one prefers.
    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let subgoal = self.of_length(self.high.forward(state, goal)?.mean())?;
        self.low.forward(state, &subgoal)?.mode()
    }

    /// `-V(s, g)`; actions play no part.
    fn distance(
        &self,
        state: &Var<B>,
        _: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        Ok(Some(self.value(state, goal)?.neg()?))
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![
            &self.values.group,
            &self.representation_group,
            &self.values.target_group,
            &self.low_group,
            &self.high_group,
        ]
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
