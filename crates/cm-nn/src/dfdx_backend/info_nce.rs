//! Cross entropy of square logits against their diagonal.

use super::math::softmax_exp;
use super::parallel::vectorised;
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
            let (logits, scale) = (&logits[..], dy[0] / n as f32);
            parallel::row_chunks(&mut dx, n, |first, dx| {
                let x = &logits[first * n..];
                match direction {
                    Direction::Rows => by_rows(dx, x, scale, &rows[first..], n),
                    Direction::Columns => by_columns(dx, x, scale, &columns),
                    Direction::Symmetric => by_both(dx, x, 0.5 * scale, &rows[first..], &columns),
                }
                for (row, index) in dx.chunks_exact_mut(n).zip(first..) {
                    row[index] -= scale;
                }
            });
            slots.add(&place, dx)
        }
    })
}

vectorised! {
    /// `scale * softmax` within each row.
    fn by_rows(dx: &mut [f32], x: &[f32], scale: f32, log_sums: &[f32], n: usize) {
        let rows = dx.chunks_exact_mut(n).zip(x.chunks_exact(n));
        for ((dx, x), log_sum) in rows.zip(log_sums) {
            for (dx, x) in dx.iter_mut().zip(x) {
                *dx = scale * softmax_exp(x - log_sum);
            }
        }
    }
}

vectorised! {
    /// `scale * softmax` within each column.
    fn by_columns(dx: &mut [f32], x: &[f32], scale: f32, log_sums: &[f32]) {
        let n = log_sums.len();
        for (dx, x) in dx.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
            for ((dx, x), log_sum) in dx.iter_mut().zip(x).zip(log_sums) {
                *dx = scale * softmax_exp(x - log_sum);
            }
        }
    }
}

vectorised! {
    /// `scale` times the sum of both.
    fn by_both(dx: &mut [f32], x: &[f32], scale: f32, rows: &[f32], columns: &[f32]) {
        let n = columns.len();
        for ((dx, x), row) in dx.chunks_exact_mut(n).zip(x.chunks_exact(n)).zip(rows) {
            for ((dx, x), column) in dx.iter_mut().zip(x).zip(columns) {
                *dx = scale * (softmax_exp(x - row) + softmax_exp(x - column));
            }
        }
    }
}

/// `ln sum exp` of each row.
fn row_log_sums(x: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0; n];
    let rows_per_task = (parallel::CHUNK / n).max(1);
    parallel::tasks(&mut sums, rows_per_task, x.len(), |first, sums| {
        reduce::reduce_rows(sums, &x[first * n..], n, reduce::log_sum_exp);
    });
    sums
}

/// Columns that one task does.
const COLUMNS: usize = 64;

/// `ln sum exp` of each column, each task doing some columns of all rows.
fn column_log_sums(x: &[f32], n: usize) -> Vec<f32> {
    let mut sums = vec![0.0; n];
    parallel::tasks(&mut sums, COLUMNS, x.len(), |first, sums| some_log_sums(x, n, first, sums));
    sums
}

vectorised! {
    /// `ln sum exp` of the columns from `first` on.
    fn some_log_sums(x: &[f32], n: usize, first: usize, sums: &mut [f32]) {
        let mut largest = [f32::NEG_INFINITY; COLUMNS];
        for row in x.chunks_exact(n) {
            for (largest, &x) in largest.iter_mut().zip(&row[first..]) {
                *largest = if x > *largest || x.is_nan() { x } else { *largest };
            }
        }
        let mut totals = [0.0_f32; COLUMNS];
        for row in x.chunks_exact(n) {
            for ((total, &largest), &x) in totals.iter_mut().zip(&largest).zip(&row[first..]) {
                *total += softmax_exp(x - largest);
            }
        }
        for ((sum, largest), total) in sums.iter_mut().zip(largest).zip(totals) {
            *sum = if largest.is_infinite() { largest } else { largest + total.ln() };
        }
    }
}
