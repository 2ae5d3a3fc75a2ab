//! Pairwise distances.

use std::ops::Range;

use rayon::prelude::*;

use super::order::Order;
use super::sweep::union_length;
use super::Groups;
use crate::panels::RowPanels;
use crate::simd::{Kernel, LANES, dispatch};
use crate::{Float, Rows};

/// Rows of `x` that one task takes.
pub(super) const BLOCK: usize = 16;

/// Writes `distances[i * m + j] = d(x_i, y_j)`.
pub(crate) fn pairwise<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    let order = Order::new(groups, x);
    let panels = RowPanels::pack(y);
    let m = y.rows();
    distances.par_chunks_mut(BLOCK * m).enumerate().for_each(|(block, distances)| {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(x.rows());
        let first = rows.start;
        dispatch(Lengths {
            groups,
            order: &order,
            panels: &panels,
            rows,
            #[inline(always)]
            visit: |row: usize, columns: Range<usize>, lengths: &Reduced<E>| {
                let out = &mut distances[(row - first) * m..][columns];
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = groups.reduce(lengths.total[lane], lengths.maximum[lane]);
                }
            },
        });
    });
}

/// The lengths of all groups, reduced, for [`LANES`] pairs.
pub(super) struct Reduced<E> {
    pub(super) total: [E; LANES],
    pub(super) maximum: [E; LANES],
    /// The first group that attains the maximum.
    pub(super) arg: [u32; LANES],
}

/// Calls `visit(row, columns, lengths)` for every row in `rows` and every panel of columns.
pub(super) struct Lengths<'a, E, F> {
    pub(super) groups: Groups,
    pub(super) order: &'a Order<E>,
    pub(super) panels: &'a RowPanels<E>,
    pub(super) rows: Range<usize>,
    pub(super) visit: F,
}

impl<E: Float, F: FnMut(usize, Range<usize>, &Reduced<E>)> Kernel for Lengths<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize>(mut self) {
        for (columns, panel) in self.panels.iter() {
            for row in self.rows.clone() {
                let mut reduced = Reduced {
                    total: [E::ZERO; LANES],
                    maximum: [E::NEG_INFINITY; LANES],
                    arg: [0; LANES],
                };
                for (group, right) in panel.chunks_exact(self.groups.size).enumerate() {
                    let length = union_length(self.order.group(row, group), right);
                    for lane in 0..LANES {
                        let larger = length[lane] > reduced.maximum[lane];
                        reduced.total[lane] += length[lane];
                        reduced.maximum[lane] =
                            if larger { length[lane] } else { reduced.maximum[lane] };
                        reduced.arg[lane] = if larger { group as u32 } else { reduced.arg[lane] };
                    }
                }
                (self.visit)(row, columns.clone(), &reduced);
            }
        }
    }
}
