//! Draws goals by checked settings.

use cm_random::{below_u64, unit_f32, unit_f64};

use crate::geometric::Discount;
use crate::goals::{End, Goals, MixedGoals};
use crate::numbering::{Numbering, Place};
use crate::offsets::Offsets;
use crate::{Error, Result};

/// Which kind of goal a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Random,
    Uniform,
    Current,
    Geometric,
}

/// Checked settings, ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct GoalSampler {
    offsets: Offsets,
    /// 1 if a step can be its own geometric goal, else 0.
    skipped: usize,
    end: End,
    goals: Mixture,
    actor: Option<Mixture>,
    subgoal_steps: usize,
}

/// Bounds below which a number in `[0, 1)` chooses each kind; beyond the last it is geometric.
#[derive(Clone, Copy, Debug)]
struct Mixture {
    random: f32,
    uniform: f32,
    current: f32,
}

impl Mixture {
    fn new(goals: &MixedGoals) -> Result<Self> {
        let MixedGoals { current, uniform_future, random } = *goals;
        let sum = random + uniform_future + current;
        let parts = [current, uniform_future, random, sum];
        if !parts.iter().all(|part| (0.0..=1.0).contains(part)) {
            return Err(Error::Parameter {
                name: "the probabilities of current, uniform future and random goals",
                expected: "at least 0 and together at most 1",
                found: format!("{current}, {uniform_future} and {random}"),
            });
        }
        Ok(Self { random, uniform: random + uniform_future, current: sum })
    }

    /// Whether there are other than geometric goals.
    fn is_mixed(&self) -> bool {
        self.current > 0.0
    }

    fn kind(&self, word: u32) -> Kind {
        match unit_f32(word) {
            x if x < self.random => Kind::Random,
            x if x < self.uniform => Kind::Uniform,
            x if x < self.current => Kind::Current,
            _ => Kind::Geometric,
        }
    }
}

/// The goals that policies learn from, for a block of rows.
pub(crate) struct ActorGoals<const N: usize> {
    pub(crate) goals: [usize; N],
    /// Where a policy of single actions is to go.
    pub(crate) low: [usize; N],
    /// Where a policy of subgoals is to send it on the way to `goals`.
    pub(crate) high: [usize; N],
}

impl GoalSampler {
    /// `longest` is the number of steps after the first in the longest trajectory.
    pub(crate) fn new(goals: &Goals, longest: u64) -> Result<Self> {
        if goals.subgoal_steps > 0 && goals.actor.is_none() {
            return Err(Error::Parameter {
                name: "goals.subgoal_steps",
                expected: "0 unless there are goals.actor",
                found: goals.subgoal_steps.to_string(),
            });
        }
        Ok(Self {
            offsets: Offsets::new(Discount::new(goals.gamma)?, longest + 1),
            skipped: usize::from(goals.include_current),
            end: goals.end,
            goals: Mixture::new(&goals.mixture())?,
            actor: goals.actor.as_ref().map(Mixture::new).transpose()?,
            subgoal_steps: usize::try_from(goals.subgoal_steps).unwrap_or(usize::MAX),
        })
    }

    /// Whether the kinds of goals have to be drawn.
    pub(crate) fn is_mixture(&self) -> bool {
        self.goals.is_mixed()
    }

    /// Whether policies have goals of their own.
    pub(crate) fn has_actor(&self) -> bool {
        self.actor.is_some()
    }

    /// Whether there are subgoals.
    pub(crate) fn has_subgoals(&self) -> bool {
        self.subgoal_steps > 0
    }

    /// The last step that can be a goal of a step of the same trajectory.
    #[inline(always)]
    fn last(&self, place: Place) -> usize {
        place.last - usize::from(self.end == End::BeforeLast)
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
            remaining[at] = (self.last(places[at]) - places[at].step + skipped) as u64;
            u[at] = unit_f64(words[at]);
        }
        let offsets = match self.end {
            End::Truncate | End::Balance => self.offsets.truncated(&remaining, &u),
            End::Clip | End::BeforeLast => self.offsets.clipped(&remaining, &u),
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
            let kind = self.goals.kind(kinds[at]);
            *goal = self.of_kind(numbering, kind, places[at], words[at]).unwrap_or(*goal);
        }
    }

    /// The goals that policies learn from; those of `goals` if they have none of their own.
    pub(crate) fn actor<const N: usize>(
        &self,
        numbering: &Numbering,
        places: &[Place; N],
        kinds: &[u32; N],
        words: &[u64; N],
    ) -> ActorGoals<N> {
        let mixture = self.actor.unwrap_or(self.goals);
        let mut drawn =
            ActorGoals { goals: self.geometric(places, words), low: [0; N], high: [0; N] };
        for at in 0..N {
            let (place, kind) = (places[at], mixture.kind(kinds[at]));
            if let Some(goal) = self.of_kind(numbering, kind, place, words[at]) {
                drawn.goals[at] = goal;
            }
            let low = place.step.saturating_add(self.subgoal_steps).min(self.last(place));
            drawn.low[at] = low;
            // On the way to a goal elsewhere, the trajectory's own way serves.
            drawn.high[at] = if kind == Kind::Random { low } else { low.min(drawn.goals[at]) };
        }
        drawn
    }

    /// A goal that is not geometric.
    fn of_kind(&self, numbering: &Numbering, kind: Kind, place: Place, word: u64) -> Option<usize> {
        let before_last = self.end == End::BeforeLast;
        match kind {
            Kind::Random if before_last => {
                Some(numbering.transition(below_u64(word, numbering.transitions())).step)
            }
            Kind::Random => Some(numbering.step(below_u64(word, numbering.steps()))),
            Kind::Uniform if before_last => {
                let (last, u) = (self.last(place), unit_f64(word));
                let first = (place.step + 1).min(last);
                let between = first as f64 * u + last as f64 * (1.0 - u);
                Some(between.round_ties_even() as usize)
            }
            Kind::Uniform => {
                let remaining = (place.last - place.step) as u64;
                Some(place.step + 1 + below_u64(word, remaining) as usize)
            }
            Kind::Current => Some(place.step),
            Kind::Geometric => None,
        }
    }
}
