//! Which recorded kernels must wait for which.

use std::collections::HashMap;

use crate::launch::Use;

/// For each step of a recording, the steps that come before it: those that wrote what it reads, and
/// those that read or wrote what it overwrites.
pub(crate) struct Order {
    /// Bit sets: all steps that come before, directly or not.
    before: Vec<Vec<u64>>,
    /// The steps to wait for; all others before are implied.
    waits: Vec<Vec<usize>>,
}

impl Order {
    /// `uses[step]` lists the buffers of each step, by number.
    pub(crate) fn new(uses: &[Vec<(u64, Use)>]) -> Self {
        let words = uses.len().div_ceil(64);
        let mut order = Self { before: Vec::new(), waits: Vec::new() };
        // The last writers of each buffer, several of parts of it, and who has read it since.
        let mut writers = HashMap::<u64, Vec<(usize, Use)>>::new();
        let mut readers = HashMap::<u64, Vec<usize>>::new();
        for (step, uses) in uses.iter().enumerate() {
            let mut waits = Vec::new();
            for &(buffer, what) in uses {
                let before = writers.get(&buffer).into_iter().flatten();
                let before = before.filter(|(_, other)| [what, *other] != [Use::Part; 2]);
                waits.extend(before.map(|(step, _)| step));
                if what != Use::Read {
                    waits.extend(readers.get(&buffer).into_iter().flatten());
                }
            }
            for &(buffer, what) in uses {
                if what == Use::Read {
                    readers.entry(buffer).or_default().push(step);
                    continue;
                }
                let writers = writers.entry(buffer).or_default();
                let has_readers = readers.remove(&buffer).is_some();
                if has_readers || what != Use::Part {
                    writers.clear();
                }
                writers.push((step, what));
            }
            order.push(words, step, waits);
        }
        order
    }

    fn push(&mut self, words: usize, step: usize, mut waits: Vec<usize>) {
        waits.retain(|&wait| wait != step);
        waits.sort_unstable_by(|a, b| b.cmp(a));
        waits.dedup();
        let mut before = vec![0; words];
        // The latest first: what it already waits for is implied.
        let mut needed = Vec::new();
        for wait in waits {
            if before[wait / 64] >> (wait % 64) & 1 == 1 {
                continue;
            }
            needed.push(wait);
            before[wait / 64] |= 1 << (wait % 64);
            for (before, other) in before.iter_mut().zip(&self.before[wait]) {
                *before |= other;
            }
        }
        needed.reverse();
        self.before.push(before);
        self.waits.push(needed);
    }

    /// Whether `early` is done when `late` starts.
    pub(crate) fn comes_before(&self, early: usize, late: usize) -> bool {
        self.before[late][early / 64] >> (early % 64) & 1 == 1
    }

    /// How many steps follow each one, on the longest way to the end.
    pub(crate) fn following(&self) -> Vec<usize> {
        let mut following = vec![0; self.waits.len()];
        for (step, waits) in self.waits.iter().enumerate().rev() {
            for &wait in waits {
                following[wait] = following[wait].max(following[step] + 1);
            }
        }
        following
    }

    /// The steps that `step` must wait for, without those that are implied.
    pub(crate) fn waits(&self, step: usize) -> &[usize] {
        &self.waits[step]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Use::{Part, Read, Update, Write};

    fn waits(uses: &[Vec<(u64, Use)>]) -> Vec<Vec<usize>> {
        let order = Order::new(uses);
        (0..uses.len()).map(|step| order.waits(step).to_vec()).collect()
    }

    #[test]
    fn readers_wait_for_writers_and_writers_for_readers() {
        let uses = [
            vec![(1, Write)],
            vec![(1, Read), (2, Write)],
            vec![(1, Read), (3, Write)],
            vec![(1, Update)],
            vec![(1, Read), (2, Read), (3, Read)],
        ];
        assert_eq!(waits(&uses), [vec![], vec![0], vec![0], vec![1, 2], vec![3]]);
    }

    #[test]
    fn independent_branches_do_not_wait_for_each_other() {
        let uses = [
            vec![(9, Read), (1, Write)],
            vec![(9, Read), (2, Write)],
            vec![(1, Read), (3, Write)],
            vec![(2, Read), (4, Write)],
            vec![(3, Read), (4, Read), (5, Write)],
        ];
        assert_eq!(waits(&uses), [vec![], vec![], vec![0], vec![1], vec![2, 3]]);
        let order = Order::new(&uses);
        assert!(order.comes_before(0, 4) && order.comes_before(1, 4));
        assert!(!order.comes_before(0, 3) && !order.comes_before(4, 0));
    }

    #[test]
    fn the_longest_way_to_the_end_counts() {
        let uses = [
            vec![(1, Write)],
            vec![(1, Read), (2, Write)],
            vec![(2, Read), (3, Write)],
            vec![(1, Read), (4, Write)],
            vec![(3, Read), (4, Read)],
        ];
        assert_eq!(Order::new(&uses).following(), [3, 2, 1, 1, 0]);
    }

    #[test]
    fn a_kernel_that_uses_a_buffer_twice_does_not_wait_for_itself() {
        assert_eq!(waits(&[vec![(1, Read), (1, Update)], vec![(1, Read)]]), [vec![], vec![0]]);
    }

    #[test]
    fn writers_of_parts_do_not_wait_for_each_other_and_readers_wait_for_all() {
        let uses = [
            vec![(1, Write)],
            vec![(1, Part)],
            vec![(1, Part)],
            vec![(1, Read)],
            vec![(1, Part)],
            vec![(1, Read)],
        ];
        let waits = waits(&uses);
        assert_eq!(waits, [vec![], vec![0], vec![0], vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn many_steps_keep_their_order() {
        let chain = (0..200).map(|step| vec![(step, Read), (step + 1, Write)]).collect::<Vec<_>>();
        let order = Order::new(&chain);
        assert!((1..200).all(|step| order.waits(step) == [step - 1]));
        assert!(order.comes_before(0, 199));
    }
}
