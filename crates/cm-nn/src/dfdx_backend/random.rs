//! Draws from Philox, addressed by seed, step and stream.

use cm_random::unit_f32;

use super::math::exp;
use super::parallel::vectorised;
use super::{DfdxBackend, Matrix, parallel, reduce};
use crate::{Distribution, Shape};

pub(super) fn draw(
    backend: &DfdxBackend,
    shape: Shape,
    distribution: Distribution,
    stream: u32,
) -> Matrix {
    let (philox, step) = (backend.inner.philox, backend.inner.step.get());
    let mut values = backend.pool().take(shape[0] * shape[1]);
    // Chunks are whole blocks of four numbers.
    parallel::chunks(&mut values, |start, chunk| {
        let first = (start / 4) as u32;
        match distribution {
            Distribution::Uniform => {
                for (four, index) in chunk.chunks_mut(4).zip(first..) {
                    let words = philox.block(step, stream, index);
                    four.copy_from_slice(&words.map(unit_f32)[..four.len()]);
                }
            }
            Distribution::Normal => philox.normals(step, stream, first, chunk),
        }
    });
    backend.constant(shape, values)
}

pub(super) fn categorical(backend: &DfdxBackend, logits: &Matrix, stream: u32) -> Matrix {
    let [rows, columns] = logits.shape;
    let uniform = draw(backend, [rows, 1], Distribution::Uniform, stream);
    let (logits, uniform) = (&logits.values[..], &uniform.values[..]);
    let mut chosen = backend.pool().take(rows);
    let rows_per_task = (parallel::CHUNK / columns).max(1);
    parallel::tasks(&mut chosen, rows_per_task, logits.len(), |first, chosen| {
        let mut weights = vec![0.0; columns];
        let rows = logits[first * columns..].chunks_exact(columns).zip(&uniform[first..]);
        for (chosen, (row, &fraction)) in chosen.iter_mut().zip(rows) {
            exponentials(&mut weights, row);
            *chosen = first_above(&weights, fraction) as f32;
        }
    });
    backend.constant([rows, 1], chosen)
}

vectorised! {
    /// `exp(x - max x)`.
    fn exponentials(weights: &mut [f32], x: &[f32]) {
        let largest = reduce::max(x);
        weights.iter_mut().zip(x).for_each(|(weight, &x)| *weight = exp(x - largest));
    }
}

/// The first position whose running sum exceeds `fraction` of the total, or the last one.
fn first_above(weights: &[f32], fraction: f32) -> usize {
    let threshold = fraction * weights.iter().sum::<f32>();
    let mut sum = 0.0;
    let above = weights.iter().position(|weight| {
        sum += weight;
        sum > threshold
    });
    above.unwrap_or(weights.len() - 1)
}

pub(super) fn permutation(backend: &DfdxBackend, n: usize, stream: u32) -> Matrix {
    let (philox, step) = (backend.inner.philox, backend.inner.step.get());
    let words = (0..n.div_ceil(4)).flat_map(|block| philox.block(step, stream, block as u32));
    let mut order = words.take(n).zip(0..n).collect::<Vec<_>>();
    order.sort_unstable();
    let mut ranks = vec![0.0; n];
    for (rank, (_, position)) in order.into_iter().enumerate() {
        ranks[position] = rank as f32;
    }
    backend.constant([n, 1], ranks)
}
