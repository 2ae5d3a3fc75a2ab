//! Distances between the rows of `x` and the same rows of `y`.

use pulp::Scalar;
use rayon::prelude::*;

use super::order::Order;
use super::sweep::{union_backward, union_length};
use super::{Groups, saturate};
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
    let order = &Order::new(groups, x);
    distances.par_chunks_mut(BLOCK).enumerate().for_each(|(block, distances)| {
        for (i, distance) in distances.iter_mut().enumerate() {
            let lengths = measure(groups, order, block * BLOCK + i, y);
            *distance = groups.reduce(lengths.total, lengths.maximum);
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
    let order = &Order::new(groups, x);
    let (chunk, width) = (BLOCK * x.columns(), x.columns());
    let blocks = grad.par_chunks(BLOCK).zip(grad_x.par_chunks_mut(chunk));
    let logits: Vec<f64> = blocks
        .zip(grad_y.par_chunks_mut(chunk))
        .enumerate()
        .map(|(block, ((grad, grad_x), grad_y))| {
            let rows = grad_x.chunks_exact_mut(width).zip(grad_y.chunks_exact_mut(width));
            let mut logit = 0.0;
            for ((i, &grad), gradients) in grad.iter().enumerate().zip(rows) {
                logit += backward(groups, order, block * BLOCK + i, y, grad, gradients);
            }
            logit
        })
        .collect();
    saturate(logits.into_iter().sum())
}

/// The lengths of all groups of one pair of points, reduced.
struct Lengths<E> {
    total: E,
    maximum: E,
    /// The first group that attains the maximum.
    arg: usize,
}

fn measure<E: Float>(groups: Groups, order: &Order<E>, row: usize, y: Rows<'_, E>) -> Lengths<E> {
    let mut lengths = Lengths { total: E::ZERO, maximum: E::NEG_INFINITY, arg: 0 };
    for (group, right) in y.row(row).chunks_exact(groups.size).enumerate() {
        let right = E::as_vectors::<Scalar>(right).0;
        let length = union_length::<E, Scalar>(Scalar, order.group(row, group), right);
        let length = E::sum(Scalar, length);
        lengths.total += length;
        if length > lengths.maximum {
            (lengths.maximum, lengths.arg) = (length, group);
        }
    }
    lengths
}

/// Adds to the gradients of one row; returns the gradient of the logit.
fn backward<E: Float>(
    groups: Groups,
    order: &Order<E>,
    row: usize,
    y: Rows<'_, E>,
    grad: E,
    (grad_x, grad_y): (&mut [E], &mut [E]),
) -> f64 {
    let lengths = measure(groups, order, row, y);
    let (total_weight, maximum_weight) = groups.weights();
    let mut reach = vec![E::ZERO; groups.size];
    let mut grad_left = vec![E::ZERO; groups.size];
    for group in 0..groups.count {
        let maximum_weight = if group == lengths.arg { maximum_weight } else { 0.0 };
        let weight = grad * (E::from_f64(total_weight) + E::from_f64(maximum_weight));
        let range = group * groups.size..(group + 1) * groups.size;
        let (index, left) = order.group(row, group);
        grad_left.fill(E::ZERO);
        union_backward::<E, Scalar>(
            Scalar,
            (index, left),
            E::as_vectors::<Scalar>(&y.row(row)[range.clone()]).0,
            E::splat(Scalar, weight),
            E::as_vectors_mut::<Scalar>(&mut reach).0,
            E::as_vectors_mut::<Scalar>(&mut grad_left).0,
            E::as_vectors_mut::<Scalar>(&mut grad_y[range.clone()]).0,
        );
        for (&i, &part) in index.iter().zip(&grad_left) {
            grad_x[range.start + i as usize] += part;
        }
    }
    grad.to_f64() * groups.logit_slope(lengths.total, lengths.maximum)
}
