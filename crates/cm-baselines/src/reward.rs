//! What a transition earns on the way to a goal, and the target that follows for a value function.

use cm_learner::Transitions;
use cm_nn::{Backend, Over, Result, Var};
use serde::{Deserialize, Serialize};

/// The reward of a transition `s -> s'` under a goal, which ends the episode when `s'` reaches it.
///
/// `k` is the number of steps from `s` to the goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reward {
    /// -1 for every transition until the goal is reached, as the paper describes its DDPG baseline.
    /// The value is `-(1 - discount^k) / (1 - discount)`, which tends to minus the hitting time
    /// `-k` as the discount tends to 1.
    #[default]
    StepCost,
    /// 1 for the transition that reaches the goal, else 0. The value is `discount^(k - 1)`.
    Success,
    /// What the authors' script of the 2-D experiment computes: 1 for reaching the goal, but the
    /// next value is counted where the goal *is* reached instead of where it is not. Nothing is
    /// passed back in time: the value only tells whether the goal is one step away. Kept to repeat
    /// the published curves.
    OneStepSuccess,
}

impl Reward {
    /// The target of the value of a transition, `[n, 1]`: its reward plus the discounted
    /// `next_value` unless the episode ended. `reached [n, 1]` is 1 where the transition reaches
    /// the goal and 0 elsewhere.
    ///
    /// ```
    /// use cm_baselines::Reward;
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let reached = Var::new(&backend, [2, 1], vec![0.0, 1.0])?;
    /// let next_value = Var::new(&backend, [2, 1], vec![-4.0, -4.0])?;
    /// let target = Reward::StepCost.target(&reached, &next_value, 0.5)?;
    /// assert_eq!(target.to_vec()?, [-3.0, -1.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn target<B: Backend>(
        self,
        reached: &Var<B>,
        next_value: &Var<B>,
        discount: f32,
    ) -> Result<Var<B>> {
        let next_value = next_value.scale(discount)?;
        let goes_on = reached.affine(-1.0, 1.0)?;
        match self {
            Self::StepCost => goes_on.mul(&next_value)?.affine(1.0, -1.0),
            Self::Success => reached.add(&goes_on.mul(&next_value)?),
            Self::OneStepSuccess => reached.mul(&next_value.affine(1.0, 1.0)?),
        }
    }

    /// The smallest and the largest value any policy can have.
    pub fn value_range(self, discount: f32) -> [f32; 2] {
        match self {
            Self::StepCost => [-1.0 / (1.0 - discount), 0.0],
            Self::Success => [0.0, 1.0],
            Self::OneStepSuccess => [0.0, 1.0 / (1.0 - discount)],
        }
    }
}

/// 1 where the state after a row's transition is its goal (or the state already was), else 0;
/// `[n, 1]`.
pub(crate) fn reached<B: Backend>(batch: &Transitions<B>) -> Result<Var<B>> {
    batch.steps_to_goal.affine(-1.0, 1.5)?.is_positive()
}

/// `mean (prediction - target)^2`; no gradient to the target.
pub fn squared_error<B: Backend>(prediction: &Var<B>, target: &Var<B>) -> Result<Var<B>> {
    prediction.sub(&target.stop_gradient())?.square()?.mean(Over::All)
}
