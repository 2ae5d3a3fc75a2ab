//! Sums of weighted differences: the gradient of a Euclidean distance.
//!
//! `out_i += sum_j w_ij (a_i - b_j)` has the cost of two matrix products, but not their cancellation:
//! `(sum_j w_ij) a_i - sum_j w_ij b_j` loses every digit where close points have the large weights
//! `w_ij = g_ij / |a_i - b_j|`. The difference is therefore formed first, in registers.

use std::ops::Range;

use crate::panels::FeaturePanels;
use crate::simd::{Kernel, LANES};
use crate::{Float, Rows};
use crate::float::multiply_add;

/// Adds to rows `rows` of the output; `w_ij = weights[i * strides.0 + j * strides.1]`.
pub(super) struct WeightedDifferences<'a, E> {
    pub(super) a: Rows<'a, E>,
    pub(super) b: &'a FeaturePanels<E>,
    pub(super) weights: &'a [E],
    pub(super) strides: (usize, usize),
    /// Rows of `a` (and of the weights) that are wanted.
    pub(super) rows: Range<usize>,
    /// The features of `a` that `b` holds.
    pub(super) features: Range<usize>,
    /// The wanted rows of the output, of the width of `a`.
    pub(super) out: &'a mut [E],
}

impl<E: Float> Kernel for WeightedDifferences<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize>(mut self) {
        for (features, panel) in self.b.iter() {
            let features = features.start + self.features.start..features.end + self.features.start;
            let mut row = self.rows.start;
            // Each row needs two registers: its features and its sum.
            while ROWS == 8 && row + 8 <= self.rows.end {
                self.tile::<FMA, 8>(row, features.clone(), panel);
                row += 8;
            }
            while row + 2 <= self.rows.end {
                self.tile::<FMA, 2>(row, features.clone(), panel);
                row += 2;
            }
            if row < self.rows.end {
                self.tile::<FMA, 1>(row, features, panel);
            }
        }
    }
}

impl<E: Float> WeightedDifferences<'_, E> {
    #[inline(always)]
    fn tile<const FMA: bool, const ROWS: usize>(
        &mut self,
        first: usize,
        features: Range<usize>,
        panel: &[[E; LANES]],
    ) {
        let mut a = [[E::ZERO; LANES]; ROWS];
        for (row, a) in a.iter_mut().enumerate() {
            a[..features.len()].copy_from_slice(&self.a.row(first + row)[features.clone()]);
        }
        let mut sums = [[E::ZERO; LANES]; ROWS];
        let weights: [&[E]; ROWS] =
            std::array::from_fn(|row| &self.weights[(first + row) * self.strides.0..]);
        for (j, b) in panel.iter().enumerate() {
            for row in 0..ROWS {
                let weight = weights[row][j * self.strides.1];
                for lane in 0..LANES {
                    sums[row][lane] =
                        multiply_add::<E, FMA>(weight, a[row][lane] - b[lane], sums[row][lane]);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let start = (first + row - self.rows.start) * self.a.columns();
            for (out, &sum) in self.out[start..][features.clone()].iter_mut().zip(sums) {
                *out += sum;
            }
        }
    }
}
