//! Gradients of pairwise distances.
//!
//! One component at a time, so that the scratch memory is three n x m buffers however many
//! components there are: the norms `|x_i - y_j|` of the Euclidean part, the maximising feature of
//! the asymmetric part, and the weights `g_ij / |x_i - y_j|`.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::norm::{careful_unit, differs_beyond_measure, irregular, is_regular};
use super::record::Component;
use super::weighted::{Layout, WeightedDifferences};
use super::{BLOCK, Split};
use crate::panels::{Aligned, FeaturePanels, RowPanels, lanes};
use crate::threads::least;
use crate::{Float, Rows};

/// What finding the feature of a maximum takes, in elements of a distance.
const ARG: usize = 16;

/// Adds the gradients of `sum_ij grad_ij d(x_i, y_j)` to `grad_x` and `grad_y`. `recorded` holds
/// every component, or none.
pub(crate) fn pairwise_backward<E: Float>(
    split: Split,
    recorded: &[Component<E>],
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) {
    let (n, m, width) = (x.rows(), y.rows(), x.columns());
    let panels = recorded.is_empty().then(|| RowPanels::pack(y));
    let stride = m.next_multiple_of(lanes::<E>());
    let mut weights = Aligned::take(n * stride);
    let share = E::from_f64(split.share());
    // What was not recorded is found again.
    let recorded = recorded.iter().map(Some).chain(std::iter::repeat(None));
    for (component, recorded) in (0..split.components).zip(recorded) {
        let found =
            panels.as_ref().map(|panels| Component::find(split, component, x, y, panels, None));
        let Some(Component { norms, arg }) = found.as_ref().or(recorded) else { continue };
        let mut irregular = match split.symmetric {
            0 => Vec::new(),
            _ => weigh(share, norms.as_ref(), grad, [n, m, stride], weights.as_mut()),
        };
        let (weights, arg) = (weights.as_ref(), arg.as_ref());
        let features = split.symmetric_features(component);
        // A weight of 0 does not silence a difference that overflows; then every pair is irregular.
        let overflows = irregular.iter().any(|&(i, j)| {
            differs_beyond_measure(&x.row(i)[features.clone()], &y.row(j)[features.clone()])
        });
        if overflows {
            irregular = (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).collect();
        }
        let offset = split.asymmetric_features(component).start;

        let b = &FeaturePanels::pack(y, features.clone());
        let blocks = grad_x.par_chunks_mut(BLOCK * width);
        let least_x = least(BLOCK * m * (2 * features.len() + ARG));
        blocks.with_min_len(least_x).enumerate().for_each(|(block, out)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            for (i, out) in rows.clone().zip(out.chunks_exact_mut(width)) {
                let out = &mut out[offset..];
                for (&arg, &grad) in arg[i * stride..].iter().zip(&grad[i * m..][..m]) {
                    if arg != E::ZERO {
                        out[arg.to_index()] += grad * share;
                    }
                }
            }
            if overflows {
                return;
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
        let blocks = grad_y.par_chunks_mut(BLOCK * width);
        let least_y = least(BLOCK * n * (2 * features.len() + ARG));
        blocks.with_min_len(least_y).enumerate().for_each(|(block, out)| {
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
            if overflows {
                return;
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

/// Fills the weights; returns the pairs whose weight is not representable (their distance is tiny
/// or huge), with weight 0 in their place.
fn weigh<E: Float>(
    share: E,
    norms: &[E],
    grad: &[E],
    [n, m, stride]: [usize; 3],
    weights: &mut [E],
) -> Vec<(usize, usize)> {
    let blocks: Vec<Vec<(usize, usize)>> = weights
        .par_chunks_mut(BLOCK * stride)
        .with_min_len(least(8 * BLOCK * stride))
        .enumerate()
        .map(|(block, weights)| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            Arch::new().dispatch(Weigh { share, norms, grad, m, stride, rows, weights })
        })
        .collect();
    blocks.into_iter().flatten().collect()
}

struct Weigh<'a, E> {
    share: E,
    norms: &'a [E],
    grad: &'a [E],
    m: usize,
    stride: usize,
    rows: Range<usize>,
    weights: &'a mut [E],
}

impl<E: Float> WithSimd for Weigh<'_, E> {
    type Output = Vec<(usize, usize)>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let mut irregular = Vec::new();
        for (row, weights) in self.rows.zip(self.weights.chunks_exact_mut(self.stride)) {
            let norms = &self.norms[row * self.stride..][..self.stride];
            let grad = &self.grad[row * self.m..][..self.m];
            if !weigh_row::<E, S>(simd, self.share, norms, grad, weights) {
                for (column, (weight, &norm)) in weights.iter_mut().zip(norms).enumerate() {
                    if !is_regular(norm * norm) || !weight.is_finite() {
                        *weight = E::ZERO;
                        if column < self.m {
                            irregular.push((row, column));
                        }
                    }
                }
            }
        }
        irregular
    }
}

/// `w_j = share g_j / norm_j`, with `g` zero in the padding; whether every weight can be trusted.
#[inline(always)]
fn weigh_row<E: Float, S: Simd>(
    simd: S,
    share: E,
    norms: &[E],
    grad: &[E],
    weights: &mut [E],
) -> bool {
    let share = E::splat(simd, share);
    let (grads, rest) = E::as_vectors::<S>(grad);
    let rest = (!rest.is_empty()).then(|| E::load(simd, rest));
    let places = E::as_vectors::<S>(norms).0.iter().zip(E::as_vectors_mut::<S>(weights).0);
    let mut bad = E::splat(simd, E::ZERO);
    for ((&norm, place), &grad) in places.zip(grads.iter().chain(&rest)) {
        let weight = E::over(simd, E::times(simd, grad, share), norm);
        *place = weight;
        let minus = E::minus(simd, E::splat(simd, E::ZERO), weight);
        let size = E::larger(simd, weight, minus);
        bad = E::larger(simd, bad, irregular::<E, S>(simd, E::times(simd, norm, norm)));
        let huge = E::exceeds(simd, size, E::splat(simd, E::MAX));
        bad = E::select(simd, huge, E::splat(simd, E::from_f64(1.0)), bad);
    }
    E::largest(simd, bad) == E::ZERO
}
