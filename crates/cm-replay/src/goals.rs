//! Which later (or other) step serves as the goal of a step.

use serde::{Deserialize, Serialize};

/// How goals are drawn: a mixture, by probability, of four kinds.
///
/// With serde every key may be absent and is then that of [`Goals::default`]; an unknown one is
/// refused.
///
/// ```
/// use cm_replay::{End, Goals, MixedGoals};
///
/// // The paper's: always a future state, discounted by gamma.
/// let paper = Goals::geometric(0.99);
///
/// // Seven of ten as before, one in ten uniformly from the rest of the trajectory, two in ten
/// // from anywhere.
/// let mixed = Goals { uniform_future: 0.1, random: 0.2, ..paper };
///
/// // As in the authors' script of the controlled 2-D experiment.
/// let plane = Goals { include_current: true, end: End::Clip, ..Goals::geometric(0.8) };
///
/// // OGBench's for HIQL: values learn from one draw, policies from another.
/// let actor = MixedGoals { uniform_future: 1.0, ..MixedGoals::default() };
/// let ogbench = Goals {
///     end: End::BeforeLast,
///     current: 0.2,
///     random: 0.3,
///     subgoal_steps: 25,
///     actor: Some(actor),
///     ..Goals::geometric(0.99)
/// };
/// # let _ = (mixed, plane, ogbench);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Goals {
    /// The discount, between 0 and 1: step `j` of step `i`'s trajectory is the goal with weight
    /// `gamma^(j - i)`. This kind is drawn with the probability that the others leave.
    pub gamma: f64,
    /// Whether a step can be its own goal: `j >= i` instead of `j > i`.
    pub include_current: bool,
    /// What happens to the weight beyond the trajectory's end.
    pub end: End,
    /// The probability that a step is its own goal.
    #[serde(skip_serializing_if = "is_zero")]
    pub current: f32,
    /// The probability of a goal uniform among the later steps of the trajectory.
    pub uniform_future: f32,
    /// The probability of a goal uniform among all steps of the selected trajectories.
    pub random: f32,
    /// How many steps ahead the subgoals of hierarchical methods lie; none are drawn if 0. Needs
    /// `actor`.
    #[serde(skip_serializing_if = "is_none")]
    pub subgoal_steps: u64,
    /// Goals that policies learn from, drawn independently; those above serve them too if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<MixedGoals>,
}

/// How a second kind of goals is mixed; what the probabilities leave is geometric, with the
/// discount and the end of the [`Goals`] they belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixedGoals {
    /// The probability that a step is its own goal.
    pub current: f32,
    /// The probability of a goal uniform among the later steps of the trajectory.
    pub uniform_future: f32,
    /// The probability of a goal uniform among all steps of the selected trajectories.
    pub random: f32,
}

impl Goals {
    /// Only geometric goals, `j > i` with probability proportional to `gamma^(j - i)`, truncated at
    /// the trajectory's end.
    pub fn geometric(gamma: f64) -> Self {
        Self {
            gamma,
            include_current: false,
            end: End::Truncate,
            current: 0.0,
            uniform_future: 0.0,
            random: 0.0,
            subgoal_steps: 0,
            actor: None,
        }
    }

    pub(crate) fn mixture(&self) -> MixedGoals {
        let Self { current, uniform_future, random, .. } = *self;
        MixedGoals { current, uniform_future, random }
    }
}

impl Default for Goals {
    /// Geometric goals with the discount 0.99.
    fn default() -> Self {
        Self::geometric(0.99)
    }
}

/// How the geometric distribution meets the end of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The weights of the steps there are, normalised.
    Truncate,
    /// An offset beyond the end becomes the last step, as in the authors' code for the controlled
    /// 2-D experiment.
    Clip,
    /// Goals as far ahead as if trajectories had no end: first the offset, with weight
    /// `gamma^offset`, then the step, uniformly among those with so many steps after them.
    ///
    /// Truncated weights favour near goals, by as much as the steps near the ends lack far ones;
    /// distances learned from them grow too fast with the number of steps. Here the late steps get
    /// fewer goals instead. Offsets that less than a tenth of the transitions have are not made up
    /// for.
    Balance,
    /// OGBench's rule: the last step but one ends a trajectory, and the last is only ever a next
    /// state.
    ///
    /// With `f` the last step but one and `i` the step: a geometric offset beyond `f` becomes `f`;
    /// a uniform future goal is `min(i + 1, f) u + f (1 - u)`, `u` uniform in `[0, 1)`, rounded to
    /// the nearest step (so that both ends have half the weight of those between); a random goal is
    /// uniform among the steps that have a next one.
    BeforeLast,
}

fn is_zero(probability: &f32) -> bool {
    *probability == 0.0
}

fn is_none(steps: &u64) -> bool {
    *steps == 0
}
