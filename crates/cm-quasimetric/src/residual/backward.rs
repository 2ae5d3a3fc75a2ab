//! Gradients of pairwise distances.
//!
//! One component at a time, so that the scratch memory is two n x m buffers however many components
//! there are: the weights `g_ij / |x_i - y_j|` of the Euclidean part and the maximising feature of
//! the asymmetric part.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::norm::{all_regular, careful_unit, is_regular, norms};
use super::weighted::{Layout, WeightedDifferences};
use super::{BLOCK, Split, tiles};
use crate::panels::{Aligned, FeaturePanels, MOST_LANES, RowPanels};
use crate::{Float, Rows};

/// Adds the gradients of `sum_ij grad_ij d(x_i, y_j)` to `grad_x` and `grad_y`.
pub(crate) fn pairwise_backward<E: Float>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) {
    let (n, m, width) = (x.rows(), y.rows(), x.columns());
    let panels = RowPanels::pack(y);
    let stride = panels.padded_rows();
    let mut weights = Aligned::zeros(n * stride);
    let mut arg = Aligned::zeros(n * stride);
    let share = E::from_f64(split.share());
    for component in 0..split.components {
        let irregular: Vec<Vec<(usize, usize)>> = weights
            .as_mut()
            .par_chunks_mut(BLOCK * stride)
            .zip(arg.as_mut().par_chunks_mut(BLOCK * stride))
            .enumerate()
            .map(|(block, (weights, arg))| {
                let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
                let panels = &panels;
                Arch::new().dispatch(Recompute {
                    split,
                    component,
                    x,
                    y,
                    panels,
                    rows,
                    grad,
                    weights,
                    arg,
                })
            })
            .collect();
        let (weights, arg) = (weights.as_ref(), arg.as_ref());
        let features = split.symmetric_features(component);
        let offset = split.asymmetric_features(component).start;

        let b = &FeaturePanels::pack(y, features.clone());
        grad_x.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, out)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            for (i, out) in rows.clone().zip(out.chunks_exact_mut(width)) {
                let out = &mut out[offset..];
                for (&arg, &grad) in arg[i * stride..].iter().zip(&grad[i * m..][..m]) {
                    if arg != E::ZERO {
                        out[arg.to_index()] += grad * share;
                    }
                }
            }
            let layout = Layout::RowMajor;
            Arch::new().dispatch(WeightedDifferences {
                a: x,
                b,
                weights,
                stride,
                layout,
                rows,
                out,
            });
        });

        let b = &FeaturePanels::pack(x, features.clone());
        grad_y.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, out)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(m);
            for i in 0..n {
                let pairs =
                    arg[i * stride..][rows.clone()].iter().zip(&grad[i * m..][rows.clone()]);
                for ((&arg, &grad), out) in pairs.zip(out.chunks_exact_mut(width)) {
                    if arg != E::ZERO {
                        out[offset + arg.to_index()] -= grad * share;
                    }
                }
            }
            let layout = Layout::ColumnMajor;
            Arch::new().dispatch(WeightedDifferences {
                a: y,
                b,
                weights,
                stride,
                layout,
                rows,
                out,
            });
        });

        for (i, j) in irregular.into_iter().flatten() {
            let (x, y) = (&x.row(i)[features.clone()], &y.row(j)[features.clone()]);
            careful_unit(x, y, |k, unit| {
                let term = grad[i * m + j] * share * unit;
                grad_x[i * width + features.start + k] += term;
                grad_y[j * width + features.start + k] -= term;
            });
        }
    }
}

/// Fills the weights and the maximising features of one component for a block of rows; returns the
/// pairs whose weight is not representable (their distance is tiny or huge), with weight 0 in their place.
struct Recompute<'a, E> {
    split: Split,
    component: usize,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    panels: &'a RowPanels<E>,
    rows: Range<usize>,
    grad: &'a [E],
    weights: &'a mut [E],
    arg: &'a mut [E],
}

impl<E: Float> WithSimd for Recompute<'_, E> {
    type Output = Vec<(usize, usize)>;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Self::Output {
        let mut irregular = Vec::new();
        for (columns, panel) in self.panels.iter() {
            let panel = E::as_vectors::<S>(panel).0;
            let mut row = self.rows.start;
            while S::REGISTER_COUNT >= 32 && row + 8 <= self.rows.end {
                self.tile::<S, 8>(simd, row, columns.clone(), panel, &mut irregular);
                row += 8;
            }
            while row + 4 <= self.rows.end {
                self.tile::<S, 4>(simd, row, columns.clone(), panel, &mut irregular);
                row += 4;
            }
            while row < self.rows.end {
                self.tile::<S, 1>(simd, row, columns.clone(), panel, &mut irregular);
                row += 1;
            }
        }
        irregular
    }
}

impl<E: Float> Recompute<'_, E> {
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        columns: Range<usize>,
        panel: &[E::Vector<S>],
        irregular: &mut Vec<(usize, usize)>,
    ) {
        let stride = self.panels.padded_rows();
        let place = |row: usize| (first + row - self.rows.start) * stride + columns.start;

        let features = self.split.asymmetric_features(self.component);
        let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
        let arg = tiles::argmaxima::<E, S, ROWS>(simd, x, &panel[features]);
        for (row, &arg) in arg.iter().enumerate() {
            E::store(simd, &mut self.arg[place(row)..][..E::lanes::<S>()], arg);
        }

        let features = self.split.symmetric_features(self.component);
        if features.is_empty() {
            return;
        }
        let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
        let y = |lane| &self.y.row(columns.start + lane)[features.clone()];
        let panel = &panel[features.clone()];
        let norms = norms::<E, S, ROWS>(simd, self.split, x, y, columns.len(), panel);
        let share = E::splat(simd, E::from_f64(self.split.share()));
        for (row, &norm) in norms.iter().enumerate() {
            let grad = &self.grad[(first + row) * self.y.rows()..][columns.clone()];
            let weight = E::over(simd, E::times(simd, E::load(simd, grad), share), norm);
            let weights = &mut self.weights[place(row)..][..E::lanes::<S>()];
            E::store(simd, weights, weight);
            let size = E::larger(simd, weight, E::minus(simd, E::splat(simd, E::ZERO), weight));
            let finite = E::largest(simd, size) <= E::MAX;
            if !finite || !all_regular::<E, S>(simd, E::times(simd, norm, norm)) {
                let mut norms = [E::ZERO; MOST_LANES];
                E::store(simd, &mut norms, norm);
                for (lane, weight) in weights.iter_mut().enumerate() {
                    if !is_regular(norms[lane] * norms[lane]) || !weight.is_finite() {
                        *weight = E::ZERO;
                        if lane < columns.len() {
                            irregular.push((first + row, columns.start + lane));
                        }
                    }
                }
            }
        }
    }
}
