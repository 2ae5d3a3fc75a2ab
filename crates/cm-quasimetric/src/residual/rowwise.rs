//! Distances between the rows of `x` and the same rows of `y`.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Split;
use super::norm::{careful_norm, careful_unit, is_regular, squared_norm};
use crate::threads::least;
use crate::{Float, Rows};

/// Rows that one task takes.
const BLOCK: usize = 64;

/// Writes `distances[i] = d(x_i, y_i)`.
pub(crate) fn rowwise<E: Float>(split: Split, x: Rows<'_, E>, y: Rows<'_, E>, distances: &mut [E]) {
    let blocks = distances.par_chunks_mut(BLOCK).with_min_len(least(3 * BLOCK * x.columns()));
    blocks.enumerate().for_each(|(block, distances)| {
        Arch::new().dispatch(Forward { split, x, y, first: block * BLOCK, distances });
    });
}

/// [`rowwise`] of one row, on this thread.
pub(crate) fn one<E: Float>(split: Split, x: Rows<'_, E>, y: Rows<'_, E>, distance: &mut [E; 1]) {
    Arch::new().dispatch(Forward { split, x, y, first: 0, distances: distance });
}

struct Forward<'a, E> {
    split: Split,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    first: usize,
    distances: &'a mut [E],
}

impl<E: Float> WithSimd for Forward<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let share = E::from_f64(self.split.share());
        for (i, distance) in self.distances.iter_mut().enumerate() {
            let (x, y) = (self.x.row(self.first + i), self.y.row(self.first + i));
            let mut total = E::ZERO;
            for component in 0..self.split.components {
                let features = self.split.symmetric_features(component);
                if !features.is_empty() {
                    total += norm::<E, S>(simd, self.split, &x[features.clone()], &y[features]);
                }
                let features = self.split.asymmetric_features(component);
                total += largest::<E, S>(simd, &x[features.clone()], &y[features]);
            }
            *distance = total * share;
        }
    }
}

/// Adds the gradients of `sum_i grad_i d(x_i, y_i)` to `grad_x` and `grad_y`.
pub(crate) fn rowwise_backward<E: Float>(
    split: Split,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) {
    let chunk = BLOCK * x.columns();
    let blocks = grad.par_chunks(BLOCK).zip(grad_x.par_chunks_mut(chunk));
    let blocks = blocks.zip(grad_y.par_chunks_mut(chunk)).with_min_len(least(4 * chunk));
    blocks.enumerate().for_each(|(block, ((grad, grad_x), grad_y))| {
        Arch::new().dispatch(Backward { split, x, y, first: block * BLOCK, grad, grad_x, grad_y });
    });
}

struct Backward<'a, E> {
    split: Split,
    x: Rows<'a, E>,
    y: Rows<'a, E>,
    first: usize,
    grad: &'a [E],
    grad_x: &'a mut [E],
    grad_y: &'a mut [E],
}

impl<E: Float> WithSimd for Backward<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.x.columns();
        let share = E::from_f64(self.split.share());
        for (i, &grad) in self.grad.iter().enumerate() {
            let (x, y) = (self.x.row(self.first + i), self.y.row(self.first + i));
            let grad_x = &mut self.grad_x[i * width..][..width];
            let grad_y = &mut self.grad_y[i * width..][..width];
            for component in 0..self.split.components {
                let features = self.split.symmetric_features(component);
                if !features.is_empty() {
                    let range = features.clone();
                    euclidean_backward::<E, S>(
                        simd,
                        self.split,
                        (&x[features.clone()], &y[features]),
                        grad * share,
                        (&mut grad_x[range.clone()], &mut grad_y[range]),
                    );
                }
                let features = self.split.asymmetric_features(component);
                let (x, y) = (&x[features.clone()], &y[features.clone()]);
                let best = largest::<E, S>(simd, x, y);
                if best > E::ZERO {
                    // The first feature that attains the maximum: see the crate's documentation.
                    let arg = x.iter().zip(y).position(|(&x, &y)| x - y == best).unwrap_or(0);
                    grad_x[features.start + arg] += grad * share;
                    grad_y[features.start + arg] -= grad * share;
                }
            }
        }
    }
}

#[inline(always)]
fn euclidean_backward<E: Float, S: Simd>(
    simd: S,
    split: Split,
    (x, y): (&[E], &[E]),
    grad: E,
    (grad_x, grad_y): (&mut [E], &mut [E]),
) {
    let norm = norm::<E, S>(simd, split, x, y);
    let weight = grad / norm;
    if is_regular(norm * norm) && weight.is_finite() {
        for (((grad_x, grad_y), &x), &y) in grad_x.iter_mut().zip(grad_y).zip(x).zip(y) {
            let term = weight * (x - y);
            *grad_x += term;
            *grad_y -= term;
        }
    } else {
        careful_unit(x, y, |i, unit| {
            grad_x[i] += grad * unit;
            grad_y[i] -= grad * unit;
        });
    }
}

#[inline(always)]
fn norm<E: Float, S: Simd>(simd: S, split: Split, x: &[E], y: &[E]) -> E {
    let square = squared_norm::<E, S>(simd, x, y) + E::from_f64(split.offset());
    if is_regular(square) { square.sqrt() } else { careful_norm(x, y) }
}

/// `max_i relu(x_i - y_i)`.
#[inline(always)]
fn largest<E: Float, S: Simd>(simd: S, x: &[E], y: &[E]) -> E {
    let ((x, x_rest), (y, y_rest)) = (E::as_vectors::<S>(x), E::as_vectors::<S>(y));
    // The padding of the rest differs by 0, which the maximum includes anyway.
    let mut best = E::minus(simd, E::load(simd, x_rest), E::load(simd, y_rest));
    for (&x, &y) in x.iter().zip(y) {
        best = E::larger(simd, E::minus(simd, x, y), best);
    }
    E::largest(simd, E::larger(simd, best, E::splat(simd, E::ZERO)))
}
