//! What the gradients of pairwise distances need to know about each pair.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::norm::norms;
use super::tiles::{self, Tile, walk};
use super::{BLOCK, Split};
use crate::panels::{Aligned, RowPanels};
use crate::threads::least;
use crate::{Float, Rows};

/// One component of every pair, each row padded to whole registers.
pub(crate) struct Component<E: Float> {
    /// `|x_i - y_j|` of the Euclidean part; empty if there is none.
    pub(super) norms: Aligned<E>,
    /// The first feature that attains the maximum of the asymmetric part, in the form of
    /// [`from_index`](crate::float::Lanes::from_index); zero if no difference is positive.
    pub(super) arg: Aligned<E>,
}

impl<E: Float> Component<E> {
    /// Finds component `component` of all pairs. Adds it to `distances` if there are any, starting
    /// with component 0 and ending with the last.
    pub(super) fn find(
        split: Split,
        component: usize,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        panels: &RowPanels<E>,
        distances: Option<&mut [E]>,
    ) -> Self {
        let (n, stride) = (x.rows(), panels.padded_rows());
        let euclidean = if split.symmetric > 0 { stride } else { 0 };
        let mut found =
            Self { norms: Aligned::take(n * euclidean), arg: Aligned::take(n * stride) };
        let blocks = n.div_ceil(BLOCK);
        let mut distances: Vec<Option<&mut [E]>> = match distances {
            Some(distances) => distances.chunks_mut(BLOCK * y.rows()).map(Some).collect(),
            None => (0..blocks).map(|_| None).collect(),
        };
        let mut norms: Vec<&mut [E]> = match euclidean {
            0 => (0..blocks).map(|_| <&mut [E]>::default()).collect(),
            stride => found.norms.as_mut().chunks_mut(BLOCK * stride).collect(),
        };
        let arg = found.arg.as_mut().par_chunks_mut(BLOCK * stride);
        let blocks = arg.zip(norms.par_iter_mut()).zip(distances.par_iter_mut());
        let least = least(BLOCK * stride * (split.symmetric + split.asymmetric));
        blocks.with_min_len(least).enumerate().for_each(|(block, ((arg, norms), distances))| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            let distances = distances.as_deref_mut();
            Arch::new().dispatch(Find {
                split,
                component,
                x,
                y,
                panels,
                rows,
                norms,
                arg,
                distances,
            });
        });
        found
    }
}

struct Find<'a, E: Float> {
    split: Split,
    component: usize,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    panels: &'a RowPanels<E>,
    rows: Range<usize>,
    norms: &'a mut [E],
    arg: &'a mut [E],
    distances: Option<&'a mut [E]>,
}

impl<E: Float> WithSimd for Find<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (columns, panel) in self.panels.iter() {
            let panel = E::as_vectors::<S>(panel).0;
            walk(simd, self.rows.clone(), &mut self, &columns, panel);
        }
    }
}

impl<E: Float> Tile<E> for Find<'_, E> {
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        columns: &Range<usize>,
        panel: &[E::Vector<S>],
    ) {
        let stride = self.panels.padded_rows();
        let lanes = E::lanes::<S>();
        let place = |row: usize| (first + row - self.rows.start) * stride + columns.start;

        let features = self.split.asymmetric_features(self.component);
        let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
        let (best, arg) = tiles::argmaxima::<E, S, ROWS>(simd, x, &panel[features]);
        for (row, &arg) in arg.iter().enumerate() {
            E::store(simd, &mut self.arg[place(row)..][..lanes], arg);
        }

        let mut euclidean = [E::splat(simd, E::ZERO); ROWS];
        let features = self.split.symmetric_features(self.component);
        if !features.is_empty() {
            let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
            let y = |lane| &self.y.row(columns.start + lane)[features.clone()];
            let panel = &panel[features.clone()];
            euclidean = norms::<E, S, ROWS>(simd, self.split, x, y, columns.len(), panel);
            for (row, &norm) in euclidean.iter().enumerate() {
                E::store(simd, &mut self.norms[place(row)..][..lanes], norm);
            }
        }

        let Some(distances) = &mut self.distances else { return };
        let share = E::splat(simd, E::from_f64(self.split.share()));
        for row in 0..ROWS {
            let start = (first + row - self.rows.start) * self.y.rows();
            let out = &mut distances[start..][columns.clone()];
            let before = match self.component {
                0 => E::splat(simd, E::ZERO),
                _ => E::load(simd, out),
            };
            let sum = E::plus(simd, E::plus(simd, before, euclidean[row]), best[row]);
            let is_last = self.component + 1 == self.split.components;
            E::store(simd, out, if is_last { E::times(simd, sum, share) } else { sum });
        }
    }
}
