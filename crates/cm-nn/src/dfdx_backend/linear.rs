//! `f(x w + b)` in one operation.

use super::elementwise::{activation_gradient, apply, relu};
use super::memory::Buffer;
use super::parallel::vectorised;
use super::product::{Factor, product};
use super::{DfdxBackend, Matrix, parallel};
use crate::{Activation, Map, Result};

pub(super) fn linear(
    backend: &DfdxBackend,
    x: &Matrix,
    w: &Matrix,
    b: Option<&Matrix>,
    activation: Activation,
) -> Result<Matrix> {
    let [n, inputs] = x.shape;
    let outputs = w.shape[1];
    let places = [backend.place(x), backend.place(w), b.and_then(|b| backend.place(b))];
    let mut z = backend.pool().take(n * outputs);
    product(Factor::plain(&x.values, inputs), Factor::plain(&w.values, outputs), &mut z, true);
    let (y, z) = finish(backend, z, b.map(|b| &b.values[..]), activation);
    backend.record([n, outputs], y, &places.each_ref(), |y| {
        let (x, w, y) = (x.values.clone(), w.values.clone(), y.values.clone());
        let places = places.clone();
        move |slots, mut dz| {
            // The sign of ReLU's input can be read off its result; the others kept their input.
            activation_gradient(activation, &mut dz, z.as_deref().unwrap_or(&y));
            let [x_place, w_place, b_place] = &places;
            if let Some(place) = b_place {
                slots.write(place, outputs, |db, first| column_sums(&dz, db, first))?;
            }
            if let Some(place) = w_place {
                let factors = (Factor::transposed(&x, inputs), Factor::plain(&dz, outputs));
                slots.write(place, inputs * outputs, |dw, first| {
                    product(factors.0, factors.1, dw, first);
                })?;
            }
            if let Some(place) = x_place {
                let factors = (Factor::plain(&dz, outputs), Factor::transposed(&w, outputs));
                slots.write(place, n * inputs, |dx, first| {
                    product(factors.0, factors.1, dx, first);
                })?;
            }
            slots.pool().give(dz);
            Ok(())
        }
    })
}

/// Adds the bias to `z` and applies the activation; returns the result, and `z` if the gradient will need it.
fn finish(
    backend: &DfdxBackend,
    mut z: Vec<f32>,
    b: Option<&[f32]>,
    activation: Activation,
) -> (Vec<f32>, Option<Buffer>) {
    match (b, activation) {
        (Some(b), Activation::Relu) => add_row(&mut z, b, relu),
        (Some(b), _) => add_row(&mut z, b, |z| z),
        (None, Activation::Relu) => parallel::map_in_place(&mut z, relu),
        (None, _) => {}
    }
    if matches!(activation, Activation::Identity | Activation::Relu) {
        return (z, None);
    }
    let mut y = backend.pool().take(z.len());
    apply(Map::Activation(activation), &mut y, &z);
    (y, Some(Buffer::new(z, &backend.inner.pool)))
}

/// `z = f(z + b)` for every row of `z`.
fn add_row(z: &mut [f32], b: &[f32], f: impl Fn(f32) -> f32 + Sync + Send) {
    parallel::row_chunks(z, b.len(), |_, rows| add_row_to(rows, b, &f));
}

vectorised! {
    fn add_row_to<F: Fn(f32) -> f32>(rows: &mut [f32], b: &[f32], f: F) {
        for row in rows.chunks_exact_mut(b.len()) {
            for (z, b) in row.iter_mut().zip(b) {
                *z = f(*z + b);
            }
        }
    }
}

/// Sums the rows of `x` into `sums`, overwriting it if `first`.
pub(super) fn column_sums(x: &[f32], sums: &mut [f32], first: bool) {
    /// Each task does some columns of all rows, so that the order of additions is always that of the rows.
    const COLUMNS: usize = 128;
    let columns = sums.len();
    if first {
        sums.fill(0.0);
    }
    parallel::tasks(sums, COLUMNS, x.len() / 4, |start, sums| add_rows(x, columns, start, sums));
}

vectorised! {
    fn add_rows(x: &[f32], columns: usize, start: usize, sums: &mut [f32]) {
        for row in x.chunks_exact(columns) {
            for (sum, x) in sums.iter_mut().zip(&row[start..]) {
                *sum += x;
            }
        }
    }
}
