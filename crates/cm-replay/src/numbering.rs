//! Numbers the steps and the transitions of some trajectories, so that one uniform integer draws
//! one of them.

use crate::{Dataset, Error, Result};

/// A step and the last step of its trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) step: usize,
    pub(crate) last: usize,
}

/// The selected trajectories, with their steps and their transitions counted from 0 without gaps.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    transitions: Lookup,
    steps: Lookup,
    longest: u64,
}

impl Numbering {
    /// Counts in `trajectories`, or in all of them.
    pub(crate) fn new(data: &Dataset, trajectories: Option<&[usize]>) -> Result<Self> {
        let count = data.trajectories();
        let chosen: Vec<usize> = match trajectories {
            None => (0..count).collect(),
            Some(chosen) => chosen.to_vec(),
        };
        if let Some(unknown) = chosen.iter().find(|&&trajectory| trajectory >= count) {
            let reason = format!("no trajectory {unknown}, there are {count}");
            return Err(Error::Trajectories { reason });
        }
        let rows = || chosen.iter().map(|&trajectory| data.trajectory(trajectory));
        let transitions = Lookup::new(rows().map(|rows| (rows.start, rows.len() - 1)));
        if transitions.total() == 0 {
            return Err(Error::NoTransitions { trajectories: chosen.len() });
        }
        let steps = Lookup::new(rows().map(|rows| (rows.start, rows.len())));
        let longest = rows().map(|rows| rows.len() as u64 - 1).max().unwrap_or(0);
        Ok(Self { transitions, steps, longest })
    }

    pub(crate) fn transitions(&self) -> u64 {
        self.transitions.total()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.total()
    }

    /// The number of transitions in the longest trajectory.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// The step at which transition `number` starts.
    #[inline(always)]
    pub(crate) fn transition(&self, number: u64) -> Place {
        // As many transitions as steps after the first: the end of the group is the last step.
        let (step, last) = self.transitions.find(number);
        Place { step, last }
    }

    /// Step `number`.
    #[inline(always)]
    pub(crate) fn step(&self, number: u64) -> usize {
        self.steps.find(number).0
    }
}

/// Numbers the rows of consecutive groups from 0 on and finds the row of a number: a table of
/// evenly spaced numbers leaves a handful of groups to search, usually one.
#[derive(Clone, Debug)]
struct Lookup {
    /// The groups, and one more that starts at the total.
    groups: Vec<Group>,
    /// Entry `b` is the group of the number `b << shift`; one more entry closes the last bucket.
    buckets: Vec<u32>,
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    /// How many numbers come before the group's.
    before: u64,
    /// The group's first row.
    first: usize,
}

impl Lookup {
    /// Groups of rows, each given by its first row and its size.
    fn new(sizes: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut groups = Vec::new();
        let mut total = 0;
        for (first, size) in sizes {
            groups.push(Group { before: total, first });
            total += size as u64;
        }
        // About two buckets to a group: more would need fewer comparisons, but push the data out of
        // the cache.
        let shift = (total / (2 * groups.len() as u64).max(1)).max(1).ilog2();
        groups.push(Group { before: total, first: 0 });
        let mut group = 0;
        let mut buckets: Vec<u32> = (0..total.div_ceil(1 << shift))
            .map(|bucket| {
                while groups[group + 1].before <= bucket << shift {
                    group += 1;
                }
                group as u32
            })
            .collect();
        buckets.push(groups.len().saturating_sub(2) as u32);
        Self { groups, buckets, shift }
    }

    fn total(&self) -> u64 {
        self.groups.last().map_or(0, |end| end.before)
    }

    /// The row of `number`, which is below the total, and the row after its group's last.
    #[inline(always)]
    fn find(&self, number: u64) -> (usize, usize) {
        let bucket = (number >> self.shift) as usize;
        let low = self.buckets[bucket] as usize;
        // Mostly this group or the next; the sum needs no branch, which would often be
        // mispredicted.
        let mut group = low + usize::from(self.groups[low + 1].before <= number);
        if self.groups[group + 1].before <= number {
            let high = self.buckets[bucket + 1] as usize;
            group += self.groups[group + 1..=high].partition_point(|group| group.before <= number);
        }
        let (this, next) = (self.groups[group], self.groups[group + 1]);
        let within = (number - this.before) as usize;
        (this.first + within, this.first + (next.before - this.before) as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_counting_finds(sizes in prop::collection::vec(prop_oneof![0_usize..3, 0_usize..400], 1..60)) {
            let lookup = Lookup::new(sizes.iter().enumerate().map(|(group, &size)| (1000 * group, size)));
            let mut number = 0;
            for (group, &size) in sizes.iter().enumerate() {
                for within in 0..size {
                    let first = 1000 * group;
                    prop_assert_eq!(lookup.find(number), (first + within, first + size));
                    number += 1;
                }
            }
            prop_assert_eq!(lookup.total(), number);
        }
    }
}
