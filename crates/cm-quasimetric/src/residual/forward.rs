//! Pairwise distances.

use std::ops::Range;

use rayon::prelude::*;

use super::norm::{careful_norm, is_regular};
use super::{Split, tiles};
use crate::panels::RowPanels;
use crate::simd::{Kernel, LANES, dispatch};
use crate::{Float, Rows};

/// Rows of `x` that one task takes: small enough to share work, large enough that a panel of `y`
/// loaded into the cache is used many times.
pub(super) const BLOCK: usize = 32;

/// Writes `distances[i * m + j] = d(x_i, y_j)`.
pub(crate) fn pairwise<E: Float>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    let panels = RowPanels::pack(y);
    distances.par_chunks_mut(BLOCK * y.rows()).enumerate().for_each(|(block, distances)| {
        let first = block * BLOCK;
        let rows = first..(first + BLOCK).min(x.rows());
        dispatch(Forward { split, x, y, panels: &panels, rows, distances });
    });
}

struct Forward<'a, E> {
    split: Split,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    panels: &'a RowPanels<E>,
    rows: Range<usize>,
    distances: &'a mut [E],
}

impl<E: Float> Kernel for Forward<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize>(mut self) {
        for (columns, panel) in self.panels.iter() {
            let mut row = self.rows.start;
            while row + ROWS <= self.rows.end {
                self.tile::<FMA, ROWS>(row, columns.clone(), panel);
                row += ROWS;
            }
            while row < self.rows.end {
                self.tile::<FMA, 1>(row, columns.clone(), panel);
                row += 1;
            }
        }
    }
}

impl<E: Float> Forward<'_, E> {
    #[inline(always)]
    fn tile<const FMA: bool, const ROWS: usize>(
        &mut self,
        first: usize,
        columns: Range<usize>,
        panel: &[[E; LANES]],
    ) {
        let mut total = [[E::ZERO; LANES]; ROWS];
        for component in 0..self.split.components {
            let features = self.split.symmetric_features(component);
            if !features.is_empty() {
                let part =
                    norms::<E, FMA, ROWS>(self.split, self.x, self.y, first, &columns, features, panel);
                add(&mut total, part);
            }
            let features = self.split.asymmetric_features(component);
            let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
            add(&mut total, tiles::maxima::<E, ROWS>(x, &panel[features.clone()]));
        }
        let share = E::from_f64(self.split.share());
        for (row, total) in total.iter().enumerate() {
            let start = (first + row - self.rows.start) * self.y.rows();
            let out = &mut self.distances[start..][columns.clone()];
            for (out, &total) in out.iter_mut().zip(total) {
                *out = total * share;
            }
        }
    }
}

/// Euclidean distances of one component for each pair of a tile.
#[inline(always)]
pub(super) fn norms<E: Float, const FMA: bool, const ROWS: usize>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    first: usize,
    columns: &Range<usize>,
    features: Range<usize>,
    panel: &[[E; LANES]],
) -> [[E; LANES]; ROWS] {
    let rows = std::array::from_fn(|row| &x.row(first + row)[features.clone()]);
    let mut norms = tiles::squares::<E, FMA, ROWS>(rows, &panel[features.clone()]);
    let offset = E::from_f64(split.offset());
    for (x, norms) in rows.iter().zip(&mut norms) {
        let mut irregular = false;
        let squares = *norms;
        for lane in 0..LANES {
            let square = squares[lane] + offset;
            irregular |= !is_regular(square);
            norms[lane] = square.sqrt();
        }
        if irregular {
            for (lane, column) in columns.clone().enumerate() {
                if !is_regular(squares[lane] + offset) {
                    norms[lane] = careful_norm(x, &y.row(column)[features.clone()]);
                }
            }
        }
    }
    norms
}

#[inline(always)]
fn add<E: Float, const ROWS: usize>(total: &mut [[E; LANES]; ROWS], part: [[E; LANES]; ROWS]) {
    for (total, part) in total.iter_mut().zip(part) {
        for lane in 0..LANES {
            total[lane] += part[lane];
        }
    }
}
