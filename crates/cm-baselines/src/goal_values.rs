//! What OGBench's methods with values share: rewards of goals, expectiles, two networks with slow
//! copies.

use cm_learner::{Group, Transitions};
use cm_nn::check::{Within, fraction, require};
use cm_nn::{AdamSettings, Backend, Mlp, MlpSettings, Over, Parameters, Result, Twin, Var};
use serde::{Deserialize, Serialize};

/// How values of states for goals are learned. The defaults are OGBench's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GoalValueSettings {
    /// Hidden layers of every network of values; default 3 x 512 GELU with layer norm.
    pub network: MlpSettings,
    /// What a state earns; default -1 until the goal is reached.
    pub reward: GoalReward,
    /// Discount, in `[0, 1)`; default 0.99.
    pub discount: f32,
    /// How far values lean to the best that was seen, in `(0, 1)`; default 0.9.
    pub expectile: f32,
    /// How much of the slow copies stays at each step, in `[0, 1)`; default 0.995. They follow the
    /// networks as they were before the step.
    pub target_decay: f32,
    /// What moves the networks; default learning rate 3e-4.
    pub adam: AdamSettings,
}

/// What a state earns under a goal. The episode ends where the state *is* the goal, and not one
/// step before as for [`Reward`](crate::Reward).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoalReward {
    /// -1 unless it is the goal, where it earns 0.
    #[default]
    StepCost,
    /// 1 if it is the goal, else 0.
    Success,
}

impl Default for GoalValueSettings {
    fn default() -> Self {
        Self {
            network: MlpSettings::ogbench(),
            reward: GoalReward::StepCost,
            discount: 0.99,
            expectile: 0.9,
            target_decay: 0.995,
            adam: AdamSettings { learning_rate: 3e-4, ..Default::default() },
        }
    }
}

impl GoalValueSettings {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.network.check().within("network")?;
        fraction("discount", self.discount)?;
        let expectile = self.expectile;
        require(expectile > 0.0 && expectile < 1.0, "expectile", "in (0, 1)", expectile)?;
        fraction("target_decay", self.target_decay)?;
        self.adam.check().within("adam")
    }

    /// `reward + discount next_value`, without the next value where the state is the goal; `[n, 1]`.
    pub(crate) fn target<B: Backend>(
        &self,
        batch: &Transitions<B>,
        next_value: &Var<B>,
    ) -> Result<Var<B>> {
        let goes_on = batch.steps_to_goal.is_positive()?;
        let reward = match self.reward {
            GoalReward::StepCost => goes_on.neg()?,
            GoalReward::Success => goes_on.affine(-1.0, 1.0)?,
        };
        reward.add(&goes_on.mul(&next_value.scale(self.discount)?)?)
    }

    /// The expectile where the advantage is not negative, else what it lacks of 1; a constant.
    fn weight<B: Backend>(&self, advantage: &Var<B>) -> Result<Var<B>> {
        let below = advantage.neg()?.is_positive()?;
        Ok(below.affine(1.0 - 2.0 * self.expectile, self.expectile)?.stop_gradient())
    }
}

/// Two networks of values with slow copies.
pub(crate) struct Values<B: Backend> {
    settings: GoalValueSettings,
    online: Twin<Mlp<B>>,
    target: Twin<Mlp<B>>,
    pub(crate) group: Group<B>,
    pub(crate) target_group: Group<B>,
}

impl<B: Backend> Values<B> {
    /// Networks `value_0`, `value_1`, `target_0` and `target_1` of `columns` inputs.
    pub(crate) fn new(backend: &B, settings: &GoalValueSettings, columns: usize) -> Result<Self> {
        let [mut own, mut slow] = [0; 2].map(|_| Parameters::new(backend));
        let twin = |parameters: &mut Parameters<B>, name| {
            Twin::new(name, |name| Mlp::new(parameters, name, columns, &settings.network, 1))
        };
        let (online, target) = (twin(&mut own, "value")?, twin(&mut slow, "target")?);
        let target_group = Group::average_before("target", slow, &own, settings.target_decay)?;
        let group = Group::adam("value", own, settings.adam)?;
        Ok(Self { settings: settings.clone(), online, target, group, target_group })
    }

    /// IQL's loss without actions, `[1, 1]`: each network regresses to the reward plus its slow
    /// copy's next value, with the weight of the expectile by the advantage of the transition in
    /// the slow copies. `here` and `next` are what networks see of states and goals.
    pub(crate) fn loss(
        &self,
        batch: &Transitions<B>,
        here: &Var<B>,
        next: &Var<B>,
    ) -> Result<Var<B>> {
        let Self { settings, .. } = self;
        let rows = here.rows();
        let both = Var::concat_rows(&[&here.stop_gradient(), &next.stop_gradient()])?;
        let slow = self.target.members().iter().map(|network| network.forward(&both));
        let slow = slow.collect::<Result<Vec<_>>>()?;
        let now = |index: usize| slow[index].slice_rows(0..rows);
        let later = |index: usize| slow[index].slice_rows(rows..2 * rows);

        let smaller = later(0)?.minimum(&later(1)?)?;
        let before = now(0)?.add(&now(1)?)?.scale(0.5)?;
        let advantage = settings.target(batch, &smaller)?.sub(&before)?;
        let weight = settings.weight(&advantage)?;
        let loss = |index: usize, network: &Mlp<B>| {
            let target = settings.target(batch, &later(index)?)?.stop_gradient();
            let error = target.sub(&network.forward(here)?)?;
            weight.mul(&error.square()?)?.mean(Over::All)
        };
        let networks = self.online.members();
        loss(0, &networks[0])?.add(&loss(1, &networks[1])?)
    }

    /// The mean of both networks, `[n, 1]`.
    pub(crate) fn mean(&self, seen: &Var<B>) -> Result<Var<B>> {
        let value = |network: &Mlp<B>| network.forward(seen);
        self.online.join(value, |first, second| first.add(second)?.scale(0.5))
    }

    /// How much better the second is than the first, by the mean of both networks, `[n, 1]`; a
    /// constant.
    pub(crate) fn advantage(&self, here: &Var<B>, next: &Var<B>) -> Result<Var<B>> {
        let rows = here.rows();
        let both = self.mean(&Var::concat_rows(&[here, next])?)?;
        let later = both.slice_rows(rows..2 * rows)?;
        Ok(later.sub(&both.slice_rows(0..rows)?)?.stop_gradient())
    }
}
