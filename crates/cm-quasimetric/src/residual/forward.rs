//! Pairwise distances.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::norm::norms;
use super::record::Component;
use super::tiles::{self, Tile, walk};
use super::{BLOCK, Split};
use crate::panels::RowPanels;
use crate::threads::least;
use crate::{Float, Rows};

/// Writes `distances[i * m + j] = d(x_i, y_j)`.
pub(crate) fn pairwise<E: Float>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    let panels = RowPanels::pack(y);
    let blocks = distances.par_chunks_mut(BLOCK * y.rows());
    let least = least(BLOCK * y.rows() * y.columns());
    blocks.with_min_len(least).enumerate().for_each(|(block, distances)| {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(x.rows());
        Arch::new().dispatch(Forward { split, x, y, panels: &panels, rows, distances });
    });
}

/// The same, keeping what [`pairwise_backward`](super::pairwise_backward) would otherwise find
/// again.
pub(crate) fn pairwise_recorded<E: Float>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) -> Vec<Component<E>> {
    let panels = RowPanels::pack(y);
    let find = |component| Component::find(split, component, x, y, &panels, Some(&mut *distances));
    (0..split.components).map(find).collect()
}

struct Forward<'a, E: Float> {
    split: Split,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    panels: &'a RowPanels<E>,
    rows: Range<usize>,
    distances: &'a mut [E],
}

impl<E: Float> WithSimd for Forward<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (columns, panel) in self.panels.iter() {
            let panel = E::as_vectors::<S>(panel).0;
            walk(simd, self.rows.clone(), &mut self, &columns, panel);
        }
    }
}

impl<E: Float> Tile<E> for Forward<'_, E> {
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        columns: &Range<usize>,
        panel: &[E::Vector<S>],
    ) {
        let mut total = [E::splat(simd, E::ZERO); ROWS];
        for component in 0..self.split.components {
            let features = self.split.symmetric_features(component);
            if !features.is_empty() {
                let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
                let y = |lane| &self.y.row(columns.start + lane)[features.clone()];
                let panel = &panel[features.clone()];
                let part = norms::<E, S, ROWS>(simd, self.split, x, y, columns.len(), panel);
                for row in 0..ROWS {
                    total[row] = E::plus(simd, total[row], part[row]);
                }
            }
            let features = self.split.asymmetric_features(component);
            let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
            let part = tiles::maxima::<E, S, ROWS>(simd, x, &panel[features]);
            for row in 0..ROWS {
                total[row] = E::plus(simd, total[row], part[row]);
            }
        }
        let share = E::splat(simd, E::from_f64(self.split.share()));
        for (row, &total) in total.iter().enumerate() {
            let start = (first + row - self.rows.start) * self.y.rows();
            let out = &mut self.distances[start..][columns.clone()];
            E::store(simd, out, E::times(simd, total, share));
        }
    }
}
