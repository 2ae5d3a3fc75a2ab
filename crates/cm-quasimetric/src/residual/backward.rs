//! Gradients of pairwise distances.
//!
//! One component at a time, so that the scratch memory is two n x m buffers however many components
//! there are: the weights `g_ij / |x_i - y_j|` of the Euclidean part and the maximising feature of
//! the asymmetric part.

use std::ops::Range;

use rayon::prelude::*;

use super::forward::{BLOCK, norms};
use super::norm::{careful_unit, is_regular};
use super::tiles::{self, NONE};
use super::weighted::WeightedDifferences;
use super::Split;
use crate::panels::{FeaturePanels, RowPanels};
use crate::simd::{Kernel, LANES, dispatch};
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
    let mut weights = vec![E::ZERO; if split.symmetric > 0 { n * m } else { 0 }];
    let mut arg = vec![NONE; n * m];
    for component in 0..split.components {
        let irregular = weights_and_arg(split, component, x, y, &panels, grad, &mut weights, &mut arg);
        let share = E::from_f64(split.share());
        let features = split.symmetric_features(component);
        let offset = split.asymmetric_features(component).start;

        let y_features = FeaturePanels::pack(y, features.clone());
        grad_x.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, out)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            for i in rows.clone() {
                let out = &mut out[(i - rows.start) * width..][..width];
                for (&arg, &grad) in arg[i * m..][..m].iter().zip(&grad[i * m..]) {
                    if arg != NONE {
                        out[offset + arg as usize] += grad * share;
                    }
                }
            }
            let (a, b, strides) = (x, &y_features, (m, 1));
            let features = features.clone();
            dispatch(WeightedDifferences { a, b, weights: &weights, strides, rows, features, out });
        });

        let x_features = FeaturePanels::pack(x, features.clone());
        grad_y.par_chunks_mut(BLOCK * width).enumerate().for_each(|(block, out)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(m);
            for i in 0..n {
                let pairs = i * m + rows.start..i * m + rows.end;
                for (j, (&arg, &grad)) in arg[pairs.clone()].iter().zip(&grad[pairs]).enumerate() {
                    if arg != NONE {
                        out[j * width + offset + arg as usize] -= grad * share;
                    }
                }
            }
            let (a, b, strides) = (y, &x_features, (1, m));
            let features = features.clone();
            dispatch(WeightedDifferences { a, b, weights: &weights, strides, rows, features, out });
        });

        for (i, j) in irregular {
            let (x, y) = (&x.row(i)[features.clone()], &y.row(j)[features.clone()]);
            careful_unit(x, y, |k, unit| {
                let term = grad[i * m + j] * share * unit;
                grad_x[i * width + features.start + k] += term;
                grad_y[j * width + features.start + k] -= term;
            });
        }
    }
}

/// Fills `weights` and `arg` for one component; returns the pairs whose weight is not representable
/// (their distance is tiny or huge), with weight 0 in their place.
#[allow(clippy::too_many_arguments)]
fn weights_and_arg<E: Float>(
    split: Split,
    component: usize,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    panels: &RowPanels<E>,
    grad: &[E],
    weights: &mut [E],
    arg: &mut [u32],
) -> Vec<(usize, usize)> {
    let chunk = BLOCK * y.rows();
    let blocks = arg.par_chunks_mut(chunk).zip(grad.par_chunks(chunk)).enumerate();
    let task = |block: usize, arg, grad, weights| {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(x.rows());
        dispatch(Recompute { split, component, x, y, panels, rows, grad, weights, arg })
    };
    // An empty slice has no chunks to zip with.
    let lists: Vec<Vec<(usize, usize)>> = if weights.is_empty() {
        blocks.map(|(block, (arg, grad))| task(block, arg, grad, &mut [])).collect()
    } else {
        blocks
            .zip(weights.par_chunks_mut(chunk))
            .map(|((block, (arg, grad)), weights)| task(block, arg, grad, weights))
            .collect()
    };
    lists.concat()
}

struct Recompute<'a, E> {
    split: Split,
    component: usize,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    panels: &'a RowPanels<E>,
    rows: Range<usize>,
    grad: &'a [E],
    weights: &'a mut [E],
    arg: &'a mut [u32],
}

impl<E: Float> Kernel for Recompute<'_, E> {
    type Output = Vec<(usize, usize)>;

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize>(mut self) -> Self::Output {
        let mut irregular = Vec::new();
        for (columns, panel) in self.panels.iter() {
            let mut row = self.rows.start;
            while row + ROWS <= self.rows.end {
                self.tile::<FMA, ROWS>(row, columns.clone(), panel, &mut irregular);
                row += ROWS;
            }
            while row < self.rows.end {
                self.tile::<FMA, 1>(row, columns.clone(), panel, &mut irregular);
                row += 1;
            }
        }
        irregular
    }
}

impl<E: Float> Recompute<'_, E> {
    #[inline(always)]
    fn tile<const FMA: bool, const ROWS: usize>(
        &mut self,
        first: usize,
        columns: Range<usize>,
        panel: &[[E; LANES]],
        irregular: &mut Vec<(usize, usize)>,
    ) {
        let m = self.y.rows();
        let start = |row: usize| (first + row - self.rows.start) * m;

        let features = self.split.asymmetric_features(self.component);
        let x = std::array::from_fn(|row| &self.x.row(first + row)[features.clone()]);
        let arg = tiles::argmaxima::<E, ROWS>(x, &panel[features]);
        for (row, arg) in arg.iter().enumerate() {
            self.arg[start(row)..][columns.clone()].copy_from_slice(&arg[..columns.len()]);
        }

        let features = self.split.symmetric_features(self.component);
        if features.is_empty() {
            return;
        }
        let norms =
            norms::<E, FMA, ROWS>(self.split, self.x, self.y, first, &columns, features, panel);
        let share = E::from_f64(self.split.share());
        for (row, norms) in norms.iter().enumerate() {
            let grad = &self.grad[start(row)..][columns.clone()];
            let weights = &mut self.weights[start(row)..][columns.clone()];
            let mut all_regular = true;
            for ((weight, &grad), &norm) in weights.iter_mut().zip(grad).zip(norms) {
                *weight = grad * share / norm;
                all_regular &= is_regular(norm * norm) && weight.is_finite();
            }
            if !all_regular {
                for (lane, weight) in weights.iter_mut().enumerate() {
                    if !is_regular(norms[lane] * norms[lane]) || !weight.is_finite() {
                        *weight = E::ZERO;
                        irregular.push((first + row, columns.start + lane));
                    }
                }
            }
        }
    }
}
