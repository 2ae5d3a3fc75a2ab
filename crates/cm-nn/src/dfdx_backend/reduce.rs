//! Sums, means, maxima and log-sum-exps over rows, columns or everything.

use super::math::exp;
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
    parallel::vectorised(|| {
        for (y, row) in y.iter_mut().zip(x.values.chunks_exact(columns)) {
            *y = match f {
                Reduce::Sum => sum(row),
                Reduce::Mean => sum(row) / columns as f32,
                Reduce::Max => max(row),
                Reduce::LogSumExp => log_sum_exp(row),
            };
        }
    });
    backend.record(result, y, &[&place], |y| {
        let (x, y, place) = (x.values.clone(), y.values.clone(), place.clone());
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            let (x, y) = (&x[..], &y[..]);
            let mut dx = slots.pool().take(x.len());
            parallel::row_chunks(&mut dx, columns, |first, rows| {
                for (offset, dx) in rows.chunks_exact_mut(columns).enumerate() {
                    let index = first + offset;
                    let x = &x[index * columns..(index + 1) * columns];
                    row_gradient(f, dx, x, y[index], dy[index]);
                }
            });
            slots.add(&place, dx)
        }
    })
}

/// The gradient of one row from its result `y` and that result's gradient.
#[inline(always)]
fn row_gradient(f: Reduce, dx: &mut [f32], x: &[f32], y: f32, dy: f32) {
    match f {
        Reduce::Sum => dx.fill(dy),
        Reduce::Mean => dx.fill(dy / x.len() as f32),
        Reduce::Max => {
            let winners = x.iter().filter(|&&x| x == y).count() as f32;
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = if x == y { dy / winners } else { 0.0 };
            }
        }
        Reduce::LogSumExp if y == f32::NEG_INFINITY => dx.fill(0.0),
        Reduce::LogSumExp => {
            for (dx, &x) in dx.iter_mut().zip(x) {
                *dx = dy * exp(x - y);
            }
        }
    }
}

/// Sums in a fixed order that suits vector registers: partial sums of at most 4096 numbers in `f32`, their total in `f64`.
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
    largest + sum_of(x, |x| exp(x - largest)).ln()
}
