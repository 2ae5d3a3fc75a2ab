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

    /// Whether [`Self::draw`] looks at its `kind`.
    pub(crate) fn is_mixture(&self) -> bool {
        self.uniform_below > 0.0
    }

    /// The goal of the step at `place`, which has a next one: `kind` chooses the kind, `word` the goal.
    #[inline]
    pub(crate) fn draw(&self, numbering: &Numbering, place: Place, kind: u32, word: u64) -> usize {
        let kind = unit_f32(kind);
        if kind < self.random_below {
            numbering.step(below_u64(word, numbering.steps())).step
        } else if kind < self.uniform_below {
            place.step + 1 + below_u64(word, (place.last - place.step) as u64) as usize
        } else {
            place.step + self.geometric_offset((place.last - place.step) as u64, word) as usize
        }
    }

    /// An offset of at most `remaining`, which is at least 1.
    #[inline]
    fn geometric_offset(&self, remaining: u64, word: u64) -> u64 {
        let u = unit_f64(word);
        let skipped = u64::from(self.from == From::Current);
        let offset = match self.end {
            End::Truncate => self.offsets.truncated(remaining + skipped, u),
            End::Clip => self.offsets.clipped(remaining + skipped, u),
        };
        offset - skipped
    }
}
