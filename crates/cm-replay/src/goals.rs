//! Which later (or other) step serves as the goal of a step.

use cm_random::{below_u64, unit_f32, unit_f64};

use crate::geometric::Discount;
use crate::numbering::{Numbering, Place};
use crate::offsets::Offsets;
use crate::{Error, Result};

/// How goals are drawn: a mixture, by probability, of three kinds.
///
/// ```
/// use cm_replay::{GeometricGoals, Goals};
///
/// // The paper's: always a future state, discounted by gamma.
/// let paper = Goals::geometric(0.99);
///
/// // Seven of ten as before, one in ten uniformly from the rest of the trajectory, two in ten from anywhere.
/// let mixed = Goals { uniform_future: 0.1, random: 0.2, ..paper };
/// # let _ = (mixed, GeometricGoals::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goals {
    /// The geometric kind, drawn with the probability the other two leave.
    pub geometric: GeometricGoals,
    /// The probability of a goal uniform among the later steps of the trajectory.
    pub uniform_future: f32,
    /// The probability of a goal uniform among all steps of the selected trajectories.
    pub random: f32,
}

impl Goals {
    /// Only geometric goals, `j > i` with probability proportional to `gamma^(j - i)`, truncated at the trajectory's end.
    pub fn geometric(gamma: f64) -> Self {
        let geometric = GeometricGoals { gamma, ..GeometricGoals::default() };
        Self { geometric, uniform_future: 0.0, random: 0.0 }
    }
}

/// Goals at step `j` of step `i`'s trajectory, with weight `gamma^(j - i)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeometricGoals {
    /// The discount, between 0 and 1.
    pub gamma: f64,
    /// Whether `j = i` is among the goals.
    pub from: From,
    /// What happens to the weight beyond the trajectory's end.
    pub end: End,
}

impl Default for GeometricGoals {
    fn default() -> Self {
        Self { gamma: 0.99, from: From::Next, end: End::Truncate }
    }
}

/// The nearest goal a step can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// `j > i`.
    Next,
    /// `j >= i`, as in the paper's controlled 2-D experiment.
    Current,
}

/// How the geometric distribution meets the end of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The weights of the steps there are, normalised.
    Truncate,
    /// An offset beyond the end becomes the last step, as in the authors' code for the controlled 2-D experiment.
    Clip,
}

/// Checked settings, ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct GoalSampler {
    offsets: Offsets,
    from: From,
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
            offsets: Offsets::new(Discount::new(goals.geometric.gamma)?, longest + 1),
            from: goals.geometric.from,
            end: goals.geometric.end,
            random_below: goals.random,
            uniform_below: goals.random + goals.uniform_future,
        })
    }

    /// Whether there are other than geometric goals.
    pub(crate) fn is_mixture(&self) -> bool {
        self.uniform_below > 0.0
    }

    /// The geometric goals of the steps at `places`, each of which has a next one, by a word for each.
    #[inline(always)]
    pub(crate) fn geometric<const N: usize>(
        &self,
        places: &[Place; N],
        words: &[u64; N],
    ) -> [usize; N] {
        let skipped = usize::from(self.from == From::Current);
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
