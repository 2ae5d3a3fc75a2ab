//! Sums, means, maxima and log-sum-exps over rows, columns or everything.

use super::math::softmax_exp;
use super::parallel::vectorised;
use super::{DfdxBackend, Matrix, layout, parallel};
use crate::{Over, Reduce, Result, Shape};

pub(super) fn reduce(backend: &DfdxBackend, x: &Matrix, over: Over, f: Reduce) -> Result<Matrix> {
    match over {
        Over::Columns => by_rows(backend, x, x.shape, [x.shape[0], 1], f),
        Over::All => by_rows(backend, x, [1, x.values.len()], [1, 1], f),
        Over::Rows => {
            let columns = x.shape[1];
            let by_columns = layout::transpose(backend, x)?;
            let shape = by_columns.shape;
            by_rows(backend, &by_columns, shape, [1, columns], f)
        }
    }
}

/// Reduces each row of `x` seen as `groups` (rows and columns); the result has shape `result`.
fn by_rows(
    backend: &DfdxBackend,
    x: &Matrix,
    groups: Shape,
    result: Shape,
    f: Reduce,
) -> Result<Matrix> {
    let place = backend.place(x);
    let columns = groups[1];
    let mut y = backend.pool().take(groups[0]);
    let rows_per_task = (parallel::CHUNK / columns).max(1);
    let values = &x.values[..];
    parallel::tasks(&mut y, rows_per_task, values.len(), |first, y| {
        let x = &values[first * columns..];
        match f {
            Reduce::Sum => reduce_rows(y, x, columns, sum),
            Reduce::Mean => reduce_rows(y, x, columns, |row| sum(row) / columns as f32),
            Reduce::Max => reduce_rows(y, x, columns, max),
            Reduce::LogSumExp => reduce_rows(y, x, columns, log_sum_exp),
        }
    });
    backend.record(result, y, &[&place], |y| {
        let (x, y, place) = (x.values.clone(), y.values.clone(), place.clone());
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            let (x, y) = (&x[..], &y[..]);
            let mut dx = slots.pool().take(x.len());
            parallel::row_chunks(&mut dx, columns, |first, dx| {
                gradient_rows(dx, &x[first * columns..], columns, &y[first..], &dy[first..], f);
            });
            slots.add(&place, dx)
        }
    })
}

vectorised! {
    /// `f` of each row of `x`.
    pub(super) fn reduce_rows<F: Fn(&[f32]) -> f32>(y: &mut [f32], x: &[f32], columns: usize, f: F) {
        for (y, row) in y.iter_mut().zip(x.chunks_exact(columns)) {
            *y = f(row);
        }
    }
}

vectorised! {
    /// The gradients of rows from their results `y` and those results' gradients.
    fn gradient_rows(dx: &mut [f32], x: &[f32], columns: usize, y: &[f32], dy: &[f32], f: Reduce) {
        let rows = dx.chunks_exact_mut(columns).zip(x.chunks_exact(columns));
        for ((dx, x), (&y, &dy)) in rows.zip(y.iter().zip(dy)) {
            match f {
                Reduce::Sum => dx.fill(dy),
                Reduce::Mean => dx.fill(dy / columns as f32),
                Reduce::Max => {
                    let winners = x.iter().filter(|&&x| x == y).count() as f32;
                    let share = dy / winners;
                    dx.iter_mut().zip(x).for_each(|(dx, &x)| *dx = if x == y { share } else { 0.0 });
                }
                Reduce::LogSumExp if y == f32::NEG_INFINITY => dx.fill(0.0),
                Reduce::LogSumExp => dx.iter_mut().zip(x).for_each(|(dx, &x)| *dx = dy * softmax_exp(x - y)),
            }
        }
    }
}

/// The sum of each row.
pub(super) fn row_sums(x: &[f32], columns: usize) -> Vec<f32> {
    let mut sums = vec![0.0; x.len() / columns];
    reduce_rows(&mut sums, x, columns, sum);
    sums
}

/// Sums in a fixed order that suits vector registers: partial sums of at most 4096 numbers in
/// `f32`, their total in `f64`.
#[inline(always)]
pub(super) fn sum(x: &[f32]) -> f32 {
    sum_of(x, |x| x)
}

/// [`sum`] of a function of each number.
#[inline(always)]
pub(super) fn sum_of(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut total = 0.0_f64;
    for part in x.chunks(4096) {
        let mut lanes = [0.0_f32; 32];
        let (blocks, rest) = part.as_chunks::<32>();
        for block in blocks {
            for (lane, &x) in lanes.iter_mut().zip(block) {
                *lane += f(x);
            }
        }
        let partial = lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
        total += partial + rest.iter().map(|&x| f64::from(f(x))).sum::<f64>();
    }
    total as f32
}

/// The largest number; NaN if there is one.
#[inline(always)]
pub(super) fn max(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 32];
    let larger = |a: f32, b: f32| if a > b || a.is_nan() { a } else { b };
    let (blocks, rest) = x.as_chunks::<32>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = larger(*lane, x);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// `ln sum exp`; minus infinity if all are.
#[inline(always)]
pub(super) fn log_sum_exp(x: &[f32]) -> f32 {
    let largest = max(x);
    if largest.is_infinite() {
        return largest;
    }
    largest + sum_of(x, |x| softmax_exp(x - largest)).ln()
}
