//! The left ends of each group's intervals in ascending order.

use rayon::prelude::*;

use super::Groups;
use crate::{Float, Rows};

/// For each row and group, the group's features sorted by their value (equal values by index).
pub(super) struct Order<E> {
    index: Vec<u32>,
    value: Vec<E>,
    width: usize,
    size: usize,
}

impl<E: Float> Order<E> {
    pub(super) fn new(groups: Groups, x: Rows<'_, E>) -> Self {
        let (rows, width) = x.shape();
        let size = groups.size;
        let mut index = vec![0; rows * width];
        let mut value = vec![E::ZERO; rows * width];
        index.par_chunks_mut(width).zip(value.par_chunks_mut(width)).enumerate().for_each(
            |(row, (index, value))| {
                let sorted = index.chunks_exact_mut(size).zip(value.chunks_exact_mut(size));
                for ((index, value), x) in sorted.zip(x.row(row).chunks_exact(size)) {
                    sort(x, index, value);
                }
            },
        );
        Self { index, value, width, size }
    }

    /// Indices within the group and values, both in ascending order of value.
    #[inline(always)]
    pub(super) fn group(&self, row: usize, group: usize) -> (&[u32], &[E]) {
        let start = row * self.width + group * self.size;
        (&self.index[start..][..self.size], &self.value[start..][..self.size])
    }
}

/// Sorts one group: `value` receives `x` in ascending order, `index` where each value was.
pub(super) fn sort<E: Float>(x: &[E], index: &mut [u32], value: &mut [E]) {
    const INSERTION: usize = 24;
    if x.len() > INSERTION {
        for (i, slot) in index.iter_mut().enumerate() {
            *slot = i as u32;
        }
        index.sort_unstable_by(|&a, &b| x[a as usize].total_cmp(&x[b as usize]).then(a.cmp(&b)));
        for (value, &i) in value.iter_mut().zip(index.iter()) {
            *value = x[i as usize];
        }
        return;
    }
    for (i, &new) in x.iter().enumerate() {
        let mut slot = i;
        while slot > 0 && value[slot - 1] > new {
            value[slot] = value[slot - 1];
            index[slot] = index[slot - 1];
            slot -= 1;
        }
        value[slot] = new;
        index[slot] = i as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_groups_sort_alike() {
        for length in [1_usize, 2, 7, 24, 25, 60] {
            // A few equal values, so that the order of ties shows.
            let x: Vec<f64> = (0..length).map(|i| ((i * 7919) % 13) as f64).collect();
            let (mut index, mut value) = (vec![0; length], vec![0.0; length]);
            sort(&x, &mut index, &mut value);
            let mut expected: Vec<u32> = (0..length as u32).collect();
            expected.sort_by(|&a, &b| x[a as usize].total_cmp(&x[b as usize]));
            assert_eq!(index, expected);
            assert!(value.is_sorted());
        }
    }
}
