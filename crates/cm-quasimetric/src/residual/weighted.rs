//! Sums of weighted differences: the gradient of a Euclidean distance.
//!
//! `out_i += sum_j w_ij (a_i - b_j)` has nearly the cost of a matrix product, without its
//! cancellation: `(sum_j w_ij) a_i - sum_j w_ij b_j` loses every digit where close points have the
//! large weights `w_ij = g_ij / |a_i - b_j|`. The difference is therefore formed first, in
//! registers.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::tiles::{Tile, walk};
use crate::panels::FeaturePanels;
use crate::{Float, Rows};

/// How the weights lie in memory: `w_ij` at `i * stride + j`, or at `j * stride + i`.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    RowMajor,
    ColumnMajor,
}

/// Adds to rows `rows` of the output.
pub(super) struct WeightedDifferences<'a, E: Float> {
    pub(super) a: Rows<'a, E>,
    pub(super) b: &'a FeaturePanels<E>,
    pub(super) weights: &'a [E],
    pub(super) stride: usize,
    pub(super) layout: Layout,
    /// Rows of `a` (and of the weights) that are wanted.
    pub(super) rows: Range<usize>,
    /// The wanted rows of the output, of the width of `a`.
    pub(super) out: &'a mut [E],
}

impl<E: Float> WithSimd for WeightedDifferences<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for (features, panel) in self.b.iter() {
            let panel = E::as_vectors::<S>(panel).0;
            walk(simd, self.rows.clone(), &mut self, &features, panel);
        }
    }
}

impl<E: Float> Tile<E> for WeightedDifferences<'_, E> {
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        features: &Range<usize>,
        panel: &[E::Vector<S>],
    ) {
        let mut a = [E::splat(simd, E::ZERO); ROWS];
        for (row, a) in a.iter_mut().enumerate() {
            *a = E::load(simd, &self.a.row(first + row)[features.clone()]);
        }
        let mut sums = [E::splat(simd, E::ZERO); ROWS];
        match self.layout {
            Layout::RowMajor => {
                let weights: [&[E]; ROWS] = std::array::from_fn(|row| {
                    &self.weights[(first + row) * self.stride..][..panel.len()]
                });
                for (j, &b) in panel.iter().enumerate() {
                    let weights = weights.map(|row| row[j]);
                    accumulate::<E, S, ROWS>(simd, weights, &a, b, &mut sums);
                }
            }
            Layout::ColumnMajor => {
                for (&b, weights) in panel.iter().zip(self.weights.chunks_exact(self.stride)) {
                    let weights = std::array::from_fn(|row| weights[first..first + ROWS][row]);
                    accumulate::<E, S, ROWS>(simd, weights, &a, b, &mut sums);
                }
            }
        }
        for (row, &sum) in sums.iter().enumerate() {
            let start = (first + row - self.rows.start) * self.a.columns();
            let out = &mut self.out[start..][features.clone()];
            let total = E::plus(simd, E::load(simd, out), sum);
            E::store(simd, out, total);
        }
    }
}

#[inline(always)]
fn accumulate<E: Float, S: Simd, const ROWS: usize>(
    simd: S,
    weights: [E; ROWS],
    a: &[E::Vector<S>; ROWS],
    b: E::Vector<S>,
    sums: &mut [E::Vector<S>; ROWS],
) {
    for row in 0..ROWS {
        let weight = E::splat(simd, weights[row]);
        sums[row] = E::mul_add(simd, weight, E::minus(simd, a[row], b), sums[row]);
    }
}
