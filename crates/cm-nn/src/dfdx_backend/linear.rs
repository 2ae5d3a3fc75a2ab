//! `f(x w + b)` in one operation.

use super::elementwise::{activation_gradient, apply, relu, silu};
use super::math::{silu_gate, tanh, without_tiny};
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
    let tracked = places.iter().any(Option::is_some);
    let (y, kept) = finish(backend, z, b.map(|b| &b.values[..]), activation, tracked);
    backend.record([n, outputs], y, &places.each_ref(), |y| {
        let (x, w, y) = (x.values.clone(), w.values.clone(), y.values.clone());
        let places = places.clone();
        move |slots, mut dz| {
            slope(activation, &mut dz, &y, kept.as_deref());
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

/// Adds the bias to `z` and applies the activation; returns the result, and what the gradient will
/// need beside it if it is tracked: of SiLU the sigmoid, of GELU the input.
fn finish(
    backend: &DfdxBackend,
    mut z: Vec<f32>,
    b: Option<&[f32]>,
    activation: Activation,
    tracked: bool,
) -> (Vec<f32>, Option<Buffer>) {
    match activation {
        Activation::Identity if b.is_none() => {}
        Activation::Identity => add_row(&mut z, b, |z| z),
        Activation::Relu => add_row(&mut z, b, relu),
        Activation::Tanh => add_row(&mut z, b, tanh),
        Activation::Silu if !tracked => add_row(&mut z, b, silu),
        Activation::Silu => {
            let mut sigmoids = backend.pool().take(z.len());
            let outputs = b.map_or(1, <[f32]>::len);
            parallel::row_chunks_of_two(&mut z, &mut sigmoids, outputs, |z, sigmoids| {
                silu_rows(z, sigmoids, b);
            });
            return (z, Some(Buffer::new(sigmoids, &backend.inner.pool)));
        }
        Activation::Gelu => {
            add_row(&mut z, b, |z| z);
            let mut y = backend.pool().take(z.len());
            apply(Map::Activation(activation), &mut y, &z);
            return (y, Some(Buffer::new(z, &backend.inner.pool)));
        }
    }
    (z, None)
}

/// `dz = dy f'(z)` in place, from the result `y = f(z)` and what [`finish`] kept.
fn slope(activation: Activation, dy: &mut [f32], y: &[f32], kept: Option<&[f32]>) {
    match (activation, kept) {
        (Activation::Tanh, _) => parallel::update(dy, y, |dy, y| dy * (1.0 - y * y)),
        (Activation::Silu, Some(sigmoids)) => {
            parallel::chunks(dy, |start, dy| silu_slope(dy, &y[start..], &sigmoids[start..]));
        }
        // The sign of ReLU's input can be read off its result.
        (_, kept) => activation_gradient(activation, dy, kept.unwrap_or(y)),
    }
}

vectorised! {
    /// `s = silu_gate(z + b)` and `y = (z + b) s`, in the place of `z`.
    fn silu_rows(z: &mut [f32], sigmoids: &mut [f32], b: Option<&[f32]>) {
        let Some(b) = b else {
            return z.iter_mut().zip(sigmoids).for_each(|(z, s)| silu_at(z, s, 0.0));
        };
        for (z, s) in z.chunks_exact_mut(b.len()).zip(sigmoids.chunks_exact_mut(b.len())) {
            z.iter_mut().zip(s).zip(b).for_each(|((z, s), &b)| silu_at(z, s, b));
        }
    }
}

#[inline(always)]
fn silu_at(z: &mut f32, s: &mut f32, b: f32) {
    let x = *z + b;
    *s = silu_gate(x);
    *z = x * *s;
}

vectorised! {
    /// With `y = z s`: `dz = dy (s + y (1 - s))`.
    fn silu_slope(dy: &mut [f32], y: &[f32], sigmoids: &[f32]) {
        for ((dy, y), s) in dy.iter_mut().zip(y).zip(sigmoids) {
            *dy = without_tiny(*dy * (s + y * (1.0 - s)));
        }
    }
}

/// `z = f(z + b)` for every row of `z`, or `f(z)`.
fn add_row(z: &mut [f32], b: Option<&[f32]>, f: impl Fn(f32) -> f32 + Sync + Send) {
    match b {
        Some(b) => parallel::row_chunks(z, b.len(), |_, rows| add_row_to(rows, b, &f)),
        None => parallel::map_in_place(z, f),
    }
}

vectorised! {
    /// `z = f(z + b)` for every row, on this thread.
    pub(super) fn add_row_to<F: Fn(f32) -> f32>(rows: &mut [f32], b: &[f32], f: F) {
        for row in rows.chunks_exact_mut(b.len()) {
            for (z, b) in row.iter_mut().zip(b) {
                *z = f(*z + b);
            }
        }
    }
}

/// Sums the rows of `x` into `sums`, overwriting it if `first`.
pub(super) fn column_sums(x: &[f32], sums: &mut [f32], first: bool) {
    /// Each task does some columns of all rows, so that the order of additions is always that of
    /// the rows.
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
