//! How far ahead first, then from where: goals as if trajectories had no end.

use std::ops::Range;

use cm_random::{below_u64, unit_f64};

use crate::Result;
use crate::geometric::Discount;
use crate::goals::Goals;
use crate::numbering::Place;

/// Draws of [`End::Balance`](crate::End::Balance).
#[derive(Clone, Debug)]
pub(crate) struct Lags {
    /// The lag of the first entry below: 0 if a step can be its own goal, else 1.
    first: usize,
    /// The probability of each lag and all before it; the last is 1.
    cumulative: Vec<f64>,
    /// Of each lag, how many of `walks` have a goal so far ahead.
    eligible: Vec<usize>,
    /// Trajectories, the longest first: their first row, and how many rows follow it.
    walks: Vec<(usize, usize)>,
    /// How many transitions the trajectories before each have; one more entry at the end.
    before: Vec<u64>,
}

/// Lags for which fewer than this share of the transitions have a goal are not made up for: a few
/// long trajectories would stand for all.
const LEAST_SHARE: f64 = 0.1;
/// Lags beyond which less than this weight remains are left out.
const NEGLIGIBLE: f64 = 1e-12;
/// Most lags in the table.
const MOST_LAGS: usize = 1 << 16;

impl Lags {
    /// For trajectories by their rows, some of which have more than one.
    pub(crate) fn new(rows: impl Iterator<Item = Range<usize>>, goals: &Goals) -> Result<Self> {
        let discount = Discount::new(goals.gamma)?;
        let mut walks: Vec<_> = rows.map(|rows| (rows.start, rows.len() - 1)).collect();
        walks.retain(|&(_, after)| after > 0);
        walks.sort_by_key(|&(first, after)| (std::cmp::Reverse(after), first));
        let mut before = vec![0];
        for &(_, after) in &walks {
            before.push(before[before.len() - 1] + after as u64);
        }
        let first = usize::from(!goals.include_current);
        let mut lags = Self { first, cumulative: Vec::new(), eligible: Vec::new(), walks, before };
        let all = lags.count(1, lags.walks.len()) as f64;
        let mut total = 0.0;
        let longest = lags.walks.first().map_or(0, |walk| walk.1);
        for lag in (first..=longest).take(MOST_LAGS) {
            let weight = 1.0 - discount.cumulative(lag as u64);
            if weight < NEGLIGIBLE {
                break;
            }
            let eligible = lags.walks.partition_point(|walk| walk.1 >= lag.max(1));
            let share = lags.count(lag, eligible) as f64 / all;
            total += weight * (share / LEAST_SHARE).min(1.0);
            lags.cumulative.push(total);
            lags.eligible.push(eligible);
        }
        lags.cumulative.iter_mut().for_each(|sum| *sum /= total);
        Ok(lags)
    }

    /// How many transitions of the `walks` longest trajectories have a goal `lag` ahead.
    fn count(&self, lag: usize, walks: usize) -> u64 {
        self.before[walks] - (lag.max(1) - 1) as u64 * walks as u64
    }

    /// A step and its goal, by two words: the second chooses the lag, the first the step.
    pub(crate) fn draw(&self, step: u64, goal: u64) -> (Place, usize) {
        let u = unit_f64(goal);
        let at = self.cumulative.partition_point(|&sum| sum <= u).min(self.cumulative.len() - 1);
        let (lag, eligible) = (self.first + at, self.eligible[at]);
        let number = below_u64(step, self.count(lag, eligible));
        // Each eligible trajectory has at least one such transition, so that counts grow.
        let (mut low, mut high) = (0, eligible);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.count(lag, middle) <= number { low = middle } else { high = middle }
        }
        let (start, after) = self.walks[low];
        let step = start + (number - self.count(lag, low)) as usize;
        (Place { step, last: start + after }, step + lag)
    }
}
