//! The left ends of each group's intervals in ascending order.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{Groups, SORT};
use crate::panels::RowPanels;
use crate::threads::least;
use crate::{Float, Rows};

/// For each row and group, the group's features sorted by their value.
///
/// The order of equal values is fixed, but not by their index.
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
        let (mut index, mut value) = (vec![0; rows * width], vec![E::ZERO; rows * width]);
        let network = &network(size);
        let panels = RowPanels::pack(x);
        let chunk = crate::panels::lanes::<E>() * width;
        let panels: Vec<&[E]> = panels.iter().map(|(_, panel)| panel).collect();
        let chunks = index.par_chunks_mut(chunk).zip(value.par_chunks_mut(chunk)).zip(panels);
        chunks.with_min_len(least(SORT * chunk)).for_each(|((index, value), panel)| {
            Arch::new().dispatch(SortPanel { size, network, panel, width, index, value });
        });
        Self { index, value, width, size }
    }

    /// Indices within the group and values, both in ascending order of value.
    #[inline(always)]
    pub(super) fn group(&self, row: usize, group: usize) -> (&[u32], &[E]) {
        let start = row * self.width + group * self.size;
        (&self.index[start..][..self.size], &self.value[start..][..self.size])
    }
}

/// Sorts the groups of all rows of a panel side by side.
struct SortPanel<'a, E> {
    size: usize,
    network: &'a [(usize, usize)],
    panel: &'a [E],
    width: usize,
    index: &'a mut [u32],
    value: &'a mut [E],
}

impl<E: Float> WithSimd for SortPanel<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (size, lanes) = (self.size, E::lanes::<S>());
        let mut indices = vec![E::ZERO; size * lanes];
        let mut values = vec![E::ZERO; size * lanes];
        for (group, panel) in self.panel.chunks_exact(size * lanes).enumerate() {
            values.copy_from_slice(panel);
            for (i, slot) in E::as_vectors_mut::<S>(&mut indices).0.iter_mut().enumerate() {
                *slot = E::splat(simd, E::from_index(i));
            }
            let value = E::as_vectors_mut::<S>(&mut values).0;
            let index = E::as_vectors_mut::<S>(&mut indices).0;
            sort::<E, S, 1>(simd, self.network, value, [index]);
            let rows = self.index.chunks_exact_mut(self.width);
            for (lane, (index, value)) in
                rows.zip(self.value.chunks_exact_mut(self.width)).enumerate()
            {
                for i in 0..size {
                    index[group * size + i] = indices[i * lanes + lane].to_index() as u32;
                    value[group * size + i] = values[i * lanes + lane];
                }
            }
        }
    }
}

/// Sorts `key` and moves the elements of `others` along, each lane by itself.
#[inline(always)]
pub(super) fn sort<E: Float, S: Simd, const OTHERS: usize>(
    simd: S,
    network: &[(usize, usize)],
    key: &mut [E::Vector<S>],
    mut others: [&mut [E::Vector<S>]; OTHERS],
) {
    for &(a, b) in network {
        let swap = E::exceeds(simd, key[a], key[b]);
        exchange::<E, S>(simd, swap, key, a, b);
        for other in &mut others {
            exchange::<E, S>(simd, swap, other, a, b);
        }
    }
}

#[inline(always)]
fn exchange<E: Float, S: Simd>(
    simd: S,
    swap: E::Mask<S>,
    values: &mut [E::Vector<S>],
    a: usize,
    b: usize,
) {
    let (first, second) = (values[a], values[b]);
    values[a] = E::select(simd, swap, second, first);
    values[b] = E::select(simd, swap, first, second);
}

/// Batcher's odd-even merge sort as a list of compare-and-exchange steps for `size` elements.
pub(super) fn network(size: usize) -> Vec<(usize, usize)> {
    let mut steps = Vec::new();
    let mut run = 1;
    while run < size {
        let mut distance = run;
        while distance > 0 {
            let mut first = distance % run;
            while first + distance < size {
                for i in first..(first + distance).min(size - distance) {
                    // Only within one pair of runs that are being merged.
                    if i / (2 * run) == (i + distance) / (2 * run) {
                        steps.push((i, i + distance));
                    }
                }
                first += 2 * distance;
            }
            distance /= 2;
        }
        run *= 2;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reduction;

    #[test]
    fn every_pattern_of_zeros_and_ones_is_sorted() {
        // A network that sorts all of these sorts everything.
        for size in 1..=14_usize {
            let network = network(size);
            for pattern in 0..1_u32 << size {
                let mut bits: Vec<u32> = (0..size).map(|i| pattern >> i & 1).collect();
                for &(a, b) in &network {
                    if bits[a] > bits[b] {
                        bits.swap(a, b);
                    }
                }
                assert!(bits.is_sorted(), "{size} {pattern:b}");
            }
        }
    }

    #[test]
    fn order_is_a_sorted_permutation_of_each_group() {
        for (rows, count, size) in [(1, 1, 1), (5, 3, 7), (17, 2, 100), (33, 4, 8)] {
            let groups = Groups { count, size, reduction: Reduction::Sum };
            let width = count * size;
            let data: Vec<f64> = (0..rows * width).map(|i| ((i * 7919) % 31) as f64).collect();
            let x = Rows::new(&data, rows, width).unwrap();
            let order = Order::new(groups, x);
            for row in 0..rows {
                for group in 0..count {
                    let (index, value) = order.group(row, group);
                    assert!(value.is_sorted());
                    let mut seen = vec![false; size];
                    for (&i, &value) in index.iter().zip(value) {
                        assert_eq!(x.row(row)[group * size + i as usize], value);
                        assert!(!std::mem::replace(&mut seen[i as usize], true));
                    }
                }
            }
        }
    }
}
