//! Pairwise distances.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Groups;
use super::order::Order;
use super::sweep::union_length;
use crate::panels::RowPanels;
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
    distances.par_chunks_mut(BLOCK * m).enumerate().for_each(|(block, distances)| {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(x.rows());
        let size = rows.len() * panels.padded_rows();
        let (mut total, mut maximum, mut arg) =
            (vec![E::ZERO; size], vec![E::ZERO; size], vec![E::ZERO; size]);
        let reduced = Reduced { total: &mut total, maximum: &mut maximum, arg: &mut arg };
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
pub(super) struct Reduced<'a, E> {
    pub(super) total: &'a mut [E],
    pub(super) maximum: &'a mut [E],
    /// The first group that attains the maximum, in the form of
    /// [`from_index`](crate::float::Lanes::from_index).
    pub(super) arg: &'a mut [E],
}

/// Fills `reduced` for the rows of `x` in `rows` and all rows of `y`.
pub(super) struct Lengths<'a, E> {
    pub(super) groups: Groups,
    pub(super) order: &'a Order<E>,
    pub(super) panels: &'a RowPanels<E>,
    pub(super) rows: Range<usize>,
    pub(super) reduced: Reduced<'a, E>,
}

impl<E: Float> WithSimd for Lengths<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let panels_per_row = self.panels.iter().len();
        let total = E::as_vectors_mut::<S>(self.reduced.total).0;
        let maximum = E::as_vectors_mut::<S>(self.reduced.maximum).0;
        let arg = E::as_vectors_mut::<S>(self.reduced.arg).0;
        for (block, (_, panel)) in self.panels.iter().enumerate() {
            let panel = E::as_vectors::<S>(panel).0;
            for row in self.rows.clone() {
                let mut sum = E::splat(simd, E::ZERO);
                let mut largest = E::splat(simd, E::NEG_INFINITY);
                let mut which = E::splat(simd, E::ZERO);
                for (group, right) in panel.chunks_exact(self.groups.size).enumerate() {
                    let length = union_length::<E, S>(simd, self.order.group(row, group), right);
                    let larger = E::exceeds(simd, length, largest);
                    sum = E::plus(simd, sum, length);
                    largest = E::larger(simd, length, largest);
                    which = E::select(simd, larger, E::splat(simd, E::from_index(group)), which);
                }
                let place = (row - self.rows.start) * panels_per_row + block;
                (total[place], maximum[place], arg[place]) = (sum, largest, which);
            }
        }
    }
}
