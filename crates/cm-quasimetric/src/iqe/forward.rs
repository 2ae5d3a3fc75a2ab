//! Pairwise distances.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::order::Order;
use super::sweep::{Reduced, union_length};
use super::{Groups, SWEEP};
use crate::panels::RowPanels;
use crate::threads::least;
use crate::{Float, Rows};

/// Rows of `x` that one task takes.
const BLOCK: usize = 16;

/// Writes `distances[i * m + j] = d(x_i, y_j)`.
pub(crate) fn pairwise<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    let order = &Order::new(groups, x);
    let panels = &RowPanels::pack(y);
    let m = y.rows();
    let blocks = distances.par_chunks_mut(BLOCK * m);
    let least = least(SWEEP * BLOCK * m * y.columns());
    blocks.with_min_len(least).enumerate().for_each(|(block, distances)| {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(x.rows());
        let size = rows.len() * panels.padded_rows();
        let (mut total, mut maximum, mut arg) =
            (vec![E::ZERO; size], vec![E::ZERO; size], vec![E::ZERO; size]);
        let reduced = Buffers { total: &mut total, maximum: &mut maximum, arg: &mut arg };
        Arch::new().dispatch(Lengths { groups, order, panels, rows, reduced });
        let padded = total
            .chunks_exact(panels.padded_rows())
            .zip(maximum.chunks_exact(panels.padded_rows()));
        for (out, (total, maximum)) in distances.chunks_exact_mut(m).zip(padded) {
            for ((out, &total), &maximum) in out.iter_mut().zip(total).zip(maximum) {
                *out = groups.reduce(total, maximum);
            }
        }
    });
}

/// The lengths of all groups, reduced, for each pair; rows padded to whole registers.
pub(super) struct Buffers<'a, E> {
    pub(super) total: &'a mut [E],
    pub(super) maximum: &'a mut [E],
    /// The first group that attains the maximum, in the form of
    /// [`from_index`](crate::float::Lanes::from_index).
    pub(super) arg: &'a mut [E],
}

/// Fills the buffers for the rows of `x` in `rows` and all rows of `y`.
pub(super) struct Lengths<'a, E: Float> {
    pub(super) groups: Groups,
    pub(super) order: &'a Order<E>,
    pub(super) panels: &'a RowPanels<E>,
    pub(super) rows: Range<usize>,
    pub(super) reduced: Buffers<'a, E>,
}

impl<E: Float> WithSimd for Lengths<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let panels: Vec<&[E::Vector<S>]> =
            self.panels.iter().map(|(_, panel)| E::as_vectors::<S>(panel).0).collect();
        let (fours, rest) = panels.as_chunks::<4>();
        for (block, &four) in fours.iter().enumerate() {
            self.panels::<S, 4>(simd, 4 * block, four);
        }
        for (block, &one) in rest.iter().enumerate() {
            self.panels::<S, 1>(simd, 4 * fours.len() + block, [one]);
        }
    }
}

impl<E: Float> Lengths<'_, E> {
    /// All rows against `P` panels, of which the first is panel `first`.
    #[inline(always)]
    fn panels<S: Simd, const P: usize>(
        &mut self,
        simd: S,
        first: usize,
        panels: [&[E::Vector<S>]; P],
    ) {
        let panels_per_row = self.panels.iter().len();
        let total = E::as_vectors_mut::<S>(self.reduced.total).0;
        let maximum = E::as_vectors_mut::<S>(self.reduced.maximum).0;
        let arg = E::as_vectors_mut::<S>(self.reduced.arg).0;
        let size = self.groups.size;
        for row in self.rows.clone() {
            let mut reduced = [Reduced::<E, S>::new(simd); P];
            for group in 0..self.groups.count {
                let (index, left) = self.order.group(row, group);
                let right = panels.map(|panel| &panel[group * size..][..size]);
                // A size the compiler knows lets it unroll the sweep.
                let length = match size {
                    8 => length::<E, S, P>(simd, &index[..8], &left[..8], right.map(|y| &y[..8])),
                    _ => length::<E, S, P>(simd, index, left, right),
                };
                for (reduced, length) in reduced.iter_mut().zip(length) {
                    reduced.push(simd, group, length);
                }
            }
            let place = (row - self.rows.start) * panels_per_row + first;
            for (p, reduced) in reduced.iter().enumerate() {
                total[place + p] = reduced.total;
                maximum[place + p] = reduced.maximum;
                arg[place + p] = reduced.arg;
            }
        }
    }
}

/// The length of one group's union for registers of pairs that share the left ends.
#[inline(always)]
fn length<E: Float, S: Simd, const P: usize>(
    simd: S,
    index: &[u32],
    left: &[E],
    right: [&[E::Vector<S>]; P],
) -> [E::Vector<S>; P] {
    let intervals = index.iter().zip(left).map(
        #[inline(always)]
        |(&i, &x)| (E::splat(simd, x), right.map(|right| right[i as usize])),
    );
    union_length::<E, S, P>(simd, intervals)
}
