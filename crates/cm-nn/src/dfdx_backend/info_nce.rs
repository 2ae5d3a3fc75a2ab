//! Cross entropy of square logits against their diagonal.

use super::math::exp;
use super::{DfdxBackend, Matrix, parallel, reduce};
use crate::{Direction, Result};

pub(super) fn info_nce(
    backend: &DfdxBackend,
    logits: &Matrix,
    direction: Direction,
) -> Result<Matrix> {
    let place = backend.place(logits);
    let n = logits.shape[0];
    // What rows and columns weigh in the loss.
    let (row_weight, column_weight) = match direction {
        Direction::Rows => (1.0, 0.0),
        Direction::Columns => (0.0, 1.0),
        Direction::Symmetric => (0.5, 0.5),
    };
    let rows = if row_weight > 0.0 { row_log_sums(&logits.values, n) } else { Vec::new() };
    let columns = if column_weight > 0.0 { column_log_sums(&logits.values, n) } else { Vec::new() };
    let total = |values: &[f32]| values.iter().map(|&value| f64::from(value)).sum::<f64>();
    let diagonal = logits.values.iter().step_by(n + 1).map(|&value| f64::from(value)).sum::<f64>();
    let loss = row_weight * total(&rows) + column_weight * total(&columns);
    let loss = ((loss - diagonal) / n as f64) as f32;
    backend.record([1, 1], vec![loss], &[&place], |_| {
        let (logits, place) = (logits.values.clone(), place.clone());
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            let mut dx = slots.pool().take(n * n);
            let logits = &logits[..];
            let scale = dy[0] / n as f32;
            parallel::row_chunks(&mut dx, n, |first, chunk| {
                for (offset, dx) in chunk.chunks_exact_mut(n).enumerate() {
                    let index = first + offset;
                    let x = &logits[index * n..(index + 1) * n];
                    match direction {
                        Direction::Rows => softmax_row(dx, x, scale, rows[index]),
                        Direction::Columns => softmax_columns(dx, x, scale, &columns),
                        Direction::Symmetric => {
                            softmax_both(dx, x, 0.5 * scale, rows[index], &columns);
                        }
                    }
                    dx[index] -= scale;
                }
            });
            slots.add(&place, dx)
        }
    })
}

#[inline(always)]
fn softmax_row(dx: &mut [f32], x: &[f32], scale: f32, log_sum: f32) {
    for (dx, &x) in dx.iter_mut().zip(x) {
        *dx = scale * exp(x - log_sum);
    }
}

#[inline(always)]
fn softmax_columns(dx: &mut [f32], x: &[f32], scale: f32, log_sums: &[f32]) {
    for ((dx, &x), &log_sum) in dx.iter_mut().zip(x).zip(log_sums) {
        *dx = scale * exp(x - log_sum);
    }
}

#[inline(always)]
fn softmax_both(dx: &mut [f32], x: &[f32], scale: f32, row: f32, columns: &[f32]) {
    for ((dx, &x), &column) in dx.iter_mut().zip(x).zip(columns) {
        *dx = scale * (exp(x - row) + exp(x - column));
    }
}

/// `ln sum exp` of each row.
fn row_log_sums(x: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0; n];
    // Some rows per task, so that large batches use all threads.
    let rows_per_task = (parallel::CHUNK / n).max(1);
    parallel::tasks(&mut sums, rows_per_task, x.len(), |first, sums| {
        for (offset, sum) in sums.iter_mut().enumerate() {
            let index = first + offset;
            *sum = reduce::log_sum_exp(&x[index * n..(index + 1) * n]);
        }
    });
    sums
}

/// `ln sum exp` of each column, each task doing some columns of all rows.
fn column_log_sums(x: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0; n];
    parallel::tasks(&mut sums, 64, x.len(), |first, sums| {
        let rows = || x.chunks_exact(n).map(|row| &row[first..first + sums.len()]);
        let mut largest = [f32::NEG_INFINITY; 64];
        for row in rows() {
            for (largest, &x) in largest.iter_mut().zip(row) {
                *largest = if x > *largest || x.is_nan() { x } else { *largest };
            }
        }
        let mut totals = [0.0_f32; 64];
        for row in rows() {
            for ((total, &largest), &x) in totals.iter_mut().zip(&largest).zip(row) {
                *total += exp(x - largest);
            }
        }
        for ((sum, largest), total) in sums.iter_mut().zip(largest).zip(totals) {
            *sum = if largest.is_infinite() { largest } else { largest + total.ln() };
        }
    });
    sums
}
