//! Numbers the steps and the transitions of some trajectories, so that one uniform integer draws one of them.

use crate::{Dataset, Error, Result};

/// A step and the last step of its trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) step: usize,
    pub(crate) last: usize,
}

/// The selected trajectories, with their steps and their transitions counted from 0 without gaps.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// First and last step of each trajectory.
    spans: Vec<(usize, usize)>,
    transitions: Lookup,
    steps: Lookup,
}

impl Numbering {
    /// Counts in `trajectories`, or in all of them.
    pub(crate) fn new(data: &Dataset, trajectories: Option<&[usize]>) -> Result<Self> {
        let span = |trajectory: usize| {
            let rows = data.trajectory(trajectory);
            (rows.start, rows.end - 1)
        };
        let count = data.trajectories();
        let spans: Vec<_> = match trajectories {
            None => (0..count).map(span).collect(),
            Some(chosen) => {
                if let Some(&unknown) = chosen.iter().find(|&&trajectory| trajectory >= count) {
                    let reason = format!("no trajectory {unknown}, there are {count}");
                    return Err(Error::Trajectories { reason });
                }
                chosen.iter().map(|&trajectory| span(trajectory)).collect()
            }
        };
        let transitions = Lookup::new(spans.iter().map(|(first, last)| last - first));
        if transitions.total == 0 {
            return Err(Error::NoTransitions { trajectories: spans.len() });
        }
        let steps = Lookup::new(spans.iter().map(|(first, last)| last - first + 1));
        Ok(Self { spans, transitions, steps })
    }

    pub(crate) fn transitions(&self) -> u64 {
        self.transitions.total
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.total
    }

    /// The number of transitions in the longest trajectory.
    pub(crate) fn longest(&self) -> u64 {
        self.spans.iter().map(|(first, last)| (last - first) as u64).max().unwrap_or(0)
    }

    /// The step at which transition `number` starts.
    #[inline]
    pub(crate) fn transition(&self, number: u64) -> Place {
        self.place(&self.transitions, number)
    }

    /// Step `number`.
    #[inline]
    pub(crate) fn step(&self, number: u64) -> Place {
        self.place(&self.steps, number)
    }

    #[inline]
    fn place(&self, lookup: &Lookup, number: u64) -> Place {
        let (trajectory, within) = lookup.find(number);
        let (first, last) = self.spans[trajectory];
        Place { step: first + within, last }
    }
}

/// Finds the group a number falls in, given the sizes of consecutive groups: a table of evenly spaced numbers leaves a handful of groups
/// to search, usually one.
#[derive(Clone, Debug)]
struct Lookup {
    /// How many numbers come before each group.
    before: Vec<u64>,
    total: u64,
    /// Entry `b` is the group of the number `b << shift`; one more entry closes the last bucket.
    buckets: Vec<u32>,
    shift: u32,
}

impl Lookup {
    fn new(sizes: impl Iterator<Item = usize>) -> Self {
        let mut total = 0;
        let before: Vec<u64> = sizes
            .map(|size| {
                let before = total;
                total += size as u64;
                before
            })
            .collect();
        // About four buckets to a group.
        let shift = (total / (4 * before.len() as u64).max(1)).max(1).ilog2();
        let mut group = 0;
        let mut buckets: Vec<u32> = (0..total.div_ceil(1 << shift))
            .map(|bucket| {
                let number = bucket << shift;
                while before.get(group + 1).is_some_and(|&next| next <= number) {
                    group += 1;
                }
                group as u32
            })
            .collect();
        buckets.push(before.len().saturating_sub(1) as u32);
        Self { before, total, buckets, shift }
    }

    /// The group of `number`, which is below the total, and its place in the group.
    #[inline]
    fn find(&self, number: u64) -> (usize, usize) {
        let bucket = (number >> self.shift) as usize;
        let (low, high) = (self.buckets[bucket] as usize, self.buckets[bucket + 1] as usize);
        let group = low + self.before[low + 1..=high].partition_point(|&next| next <= number);
        (group, (number - self.before[group]) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_counting_finds(sizes in prop::collection::vec(prop_oneof![0_usize..3, 0_usize..400], 1..60)) {
            let lookup = Lookup::new(sizes.iter().copied());
            let mut number = 0;
            for (group, &size) in sizes.iter().enumerate() {
                for within in 0..size {
                    prop_assert_eq!(lookup.find(number), (group, within));
                    number += 1;
                }
            }
            prop_assert_eq!(lookup.total, number);
        }
    }
}
