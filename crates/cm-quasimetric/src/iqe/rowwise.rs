//! Distances between the rows of `x` and the same rows of `y`.

use rayon::prelude::*;

use super::{Groups, saturate};
use super::order::sort;
use super::sweep::{union_backward, union_length};
use crate::{Float, Rows};

/// Rows that one task takes.
const BLOCK: usize = 16;

/// Writes `distances[i] = d(x_i, y_i)`.
pub(crate) fn rowwise<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    distances.par_chunks_mut(BLOCK).enumerate().for_each(|(block, distances)| {
        let mut row = Row::new(groups);
        for (i, distance) in distances.iter_mut().enumerate() {
            row.measure(groups, x.row(block * BLOCK + i), y.row(block * BLOCK + i));
            *distance = groups.reduce(row.total, row.maximum);
        }
    });
}

/// Adds the gradients of `sum_i grad_i d(x_i, y_i)` to `grad_x` and `grad_y`; returns the gradient of the
/// logit.
pub(crate) fn rowwise_backward<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) -> E {
    let chunk = BLOCK * x.columns();
    let blocks = grad.par_chunks(BLOCK).zip(grad_x.par_chunks_mut(chunk));
    let logits: Vec<f64> = blocks
        .zip(grad_y.par_chunks_mut(chunk))
        .enumerate()
        .map(|(block, ((grad, grad_x), grad_y))| {
            let mut row = Row::new(groups);
            let mut logit = 0.0;
            let rows = grad_x.chunks_exact_mut(x.columns()).zip(grad_y.chunks_exact_mut(x.columns()));
            for ((i, &grad), (grad_x, grad_y)) in grad.iter().enumerate().zip(rows) {
                let (x, y) = (x.row(block * BLOCK + i), y.row(block * BLOCK + i));
                logit += row.backward(groups, (x, y), grad, (grad_x, grad_y));
            }
            logit
        })
        .collect();
    saturate(logits.into_iter().sum())
}

/// One pair of points: the sorted left ends and the reduced lengths.
struct Row<E> {
    index: Vec<u32>,
    left: Vec<E>,
    total: E,
    maximum: E,
    arg: usize,
    reach: Vec<[E; 1]>,
    grad_left: Vec<[E; 1]>,
}

impl<E: Float> Row<E> {
    fn new(groups: Groups) -> Self {
        let width = groups.count * groups.size;
        Self {
            index: vec![0; width],
            left: vec![E::ZERO; width],
            total: E::ZERO,
            maximum: E::ZERO,
            arg: 0,
            reach: vec![[E::ZERO]; groups.size],
            grad_left: vec![[E::ZERO]; groups.size],
        }
    }

    fn measure(&mut self, groups: Groups, x: &[E], y: &[E]) {
        let size = groups.size;
        (self.total, self.maximum, self.arg) = (E::ZERO, E::NEG_INFINITY, 0);
        let sorted = self.index.chunks_exact_mut(size).zip(self.left.chunks_exact_mut(size));
        let pairs = x.chunks_exact(size).zip(y.chunks_exact(size));
        for (group, ((index, left), (x, y))) in sorted.zip(pairs).enumerate() {
            sort(x, index, left);
            let [length] = union_length((index, left), y.as_chunks::<1>().0);
            self.total += length;
            if length > self.maximum {
                (self.maximum, self.arg) = (length, group);
            }
        }
    }

    fn backward(
        &mut self,
        groups: Groups,
        (x, y): (&[E], &[E]),
        grad: E,
        (grad_x, grad_y): (&mut [E], &mut [E]),
    ) -> f64 {
        self.measure(groups, x, y);
        let (total_weight, maximum_weight) = groups.weights();
        for group in 0..groups.count {
            let maximum_weight = if group == self.arg { maximum_weight } else { 0.0 };
            let weight = grad * (E::from_f64(total_weight) + E::from_f64(maximum_weight));
            let range = group * groups.size..(group + 1) * groups.size;
            let sorted = (&self.index[range.clone()], &self.left[range.clone()]);
            self.grad_left.fill([E::ZERO]);
            union_backward(
                sorted,
                y[range.clone()].as_chunks::<1>().0,
                [weight],
                &mut self.reach,
                &mut self.grad_left,
                grad_y[range.clone()].as_chunks_mut::<1>().0,
            );
            for (&i, [part]) in sorted.0.iter().zip(&self.grad_left) {
                grad_x[range.start + i as usize] += *part;
            }
        }
        grad.to_f64() * groups.logit_slope(self.total, self.maximum)
    }
}
