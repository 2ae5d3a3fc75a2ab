//! Which later (or other) step serves as the goal of a step.

use cm_random::{below_u64, unit_f32, unit_f64};
use serde::{Deserialize, Serialize};

use crate::geometric::Discount;
use crate::numbering::{Numbering, Place};
use crate::offsets::Offsets;
use crate::{Error, Result};

/// How goals are drawn: a mixture, by probability, of three kinds.
///
/// With serde every key may be absent and is then that of [`Goals::default`]; an unknown one is
/// refused.
///
/// ```
/// use cm_replay::{End, Goals};
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
/// # let _ = (mixed, plane);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Goals {
    /// The discount, between 0 and 1: step `j` of step `i`'s trajectory is the goal with weight
    /// `gamma^(j - i)`. This kind is drawn with the probability that the other two leave.
    pub gamma: f64,
    /// Whether a step can be its own goal: `j >= i` instead of `j > i`.
    pub include_current: bool,
    /// What happens to the weight beyond the trajectory's end.
    pub end: End,
    /// The probability of a goal uniform among the later steps of the trajectory.
    pub uniform_future: f32,
    /// The probability of a goal uniform among all steps of the selected trajectories.
    pub random: f32,
}

impl Goals {
    /// Only geometric goals, `j > i` with probability proportional to `gamma^(j - i)`, truncated at
    /// the trajectory's end.
    pub fn geometric(gamma: f64) -> Self {
        Self { gamma, include_current: false, end: End::Truncate, uniform_future: 0.0, random: 0.0 }
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
}

/// Checked settings, ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct GoalSampler {
    offsets: Offsets,
    /// 1 if a step can be its own goal, else 0.
    skipped: usize,
    end: End,
    random_below: f32,
    uniform_below: f32,
}

impl GoalSampler {
    /// `longest` is the number of steps after the first in the longest trajectory.
    pub(crate) fn new(goals: &Goals, longest: u64) -> Result<Self> {
        let valid = |probability: f32| (0.0..=1.0).contains(&probability);
        if !valid(goals.uniform_future)
            || !valid(goals.random)
            || !valid(goals.uniform_future + goals.random)
        {
            return Err(Error::Parameter {
                name: "the probabilities of uniform future and random goals",
                expected: "at least 0 and together at most 1",
                found: format!("{} and {}", goals.uniform_future, goals.random),
            });
        }
        Ok(Self {
            offsets: Offsets::new(Discount::new(goals.gamma)?, longest + 1),
            skipped: usize::from(goals.include_current),
            end: goals.end,
            random_below: goals.random,
            uniform_below: goals.random + goals.uniform_future,
        })
    }

    /// Whether there are other than geometric goals.
    pub(crate) fn is_mixture(&self) -> bool {
        self.uniform_below > 0.0
    }

    /// The geometric goals of the steps at `places`, each of which has a next one, by a word for
    /// each.
    #[inline(always)]
    pub(crate) fn geometric<const N: usize>(
        &self,
        places: &[Place; N],
        words: &[u64; N],
    ) -> [usize; N] {
        let skipped = self.skipped;
        let (mut remaining, mut u) = ([0; N], [0.0; N]);
        for at in 0..N {
            remaining[at] = (places[at].last - places[at].step + skipped) as u64;
            u[at] = unit_f64(words[at]);
        }
        let offsets = match self.end {
            End::Truncate => self.offsets.truncated(&remaining, &u),
            End::Clip => self.offsets.clipped(&remaining, &u),
        };
        let mut goals = [0; N];
        for at in 0..N {
            goals[at] = places[at].step + offsets[at] as usize - skipped;
        }
        goals
    }

    /// Replaces the goals of the rows for which `kinds` chooses another kind.
    pub(crate) fn replace<const N: usize>(
        &self,
        numbering: &Numbering,
        places: &[Place; N],
        kinds: &[u32; N],
        words: &[u64; N],
        goals: &mut [usize; N],
    ) {
        for (at, goal) in goals.iter_mut().enumerate() {
            let (place, kind) = (places[at], unit_f32(kinds[at]));
            if kind < self.random_below {
                *goal = numbering.step(below_u64(words[at], numbering.steps()));
            } else if kind < self.uniform_below {
                let remaining = (place.last - place.step) as u64;
                *goal = place.step + 1 + below_u64(words[at], remaining) as usize;
            }
        }
    }
}
