//! Functions of two numbers, with repetition of single rows and columns.

use super::linear::column_sums;
use super::parallel::vectorised;
use super::{DfdxBackend, Matrix, parallel};
use crate::{Result, Shape, Zip};

pub(super) fn zip(backend: &DfdxBackend, x: &Matrix, y: &Matrix, f: Zip) -> Result<Matrix> {
    let shape = [x.shape[0].max(y.shape[0]), x.shape[1].max(y.shape[1])];
    let places = [backend.place(x), backend.place(y)];
    let mut z = backend.pool().take(shape[0] * shape[1]);
    let (a, b) = (Operand::new(x), Operand::new(y));
    match f {
        Zip::Add => combine(&mut z, shape[1], a, b, |x, y| x + y),
        Zip::Sub => combine(&mut z, shape[1], a, b, |x, y| x - y),
        Zip::Mul => combine(&mut z, shape[1], a, b, |x, y| x * y),
        Zip::Div => combine(&mut z, shape[1], a, b, |x, y| x / y),
        Zip::Max => combine(&mut z, shape[1], a, b, |x, y| if x > y || x.is_nan() { x } else { y }),
        Zip::Min => combine(&mut z, shape[1], a, b, |x, y| if x < y || x.is_nan() { x } else { y }),
    }
    backend.record(shape, z, &places.each_ref(), |_| {
        let (x, y, places) = (x.clone(), y.clone(), places.clone());
        move |slots, dz| {
            let (a, b) = (Operand::new(&x), Operand::new(&y));
            if let Some(place) = &places[0] {
                let mut dx = slots.pool().copy(&dz);
                left_gradient(f, &mut dx, shape[1], a, b);
                slots.add(place, sum_to(x.shape, shape, dx))?;
            }
            if let Some(place) = &places[1] {
                let mut dy = dz;
                right_gradient(f, &mut dy, shape[1], a, b);
                slots.add(place, sum_to(y.shape, shape, dy))?;
            }
            Ok(())
        }
    })
}

/// `dx = dz * df/dx` in place.
fn left_gradient(f: Zip, dz: &mut [f32], columns: usize, a: Operand<'_>, b: Operand<'_>) {
    match f {
        Zip::Add | Zip::Sub => {}
        Zip::Mul => update(dz, columns, a, b, |dz, _, y| dz * y),
        Zip::Div => update(dz, columns, a, b, |dz, _, y| dz / y),
        Zip::Max => update(dz, columns, a, b, |dz, x, y| dz * share(x > y, x == y)),
        Zip::Min => update(dz, columns, a, b, |dz, x, y| dz * share(x < y, x == y)),
    }
}

/// `dy = dz * df/dy` in place.
fn right_gradient(f: Zip, dz: &mut [f32], columns: usize, a: Operand<'_>, b: Operand<'_>) {
    match f {
        Zip::Add => {}
        Zip::Sub => update(dz, columns, a, b, |dz, _, _| -dz),
        Zip::Mul => update(dz, columns, a, b, |dz, x, _| dz * x),
        Zip::Div => update(dz, columns, a, b, |dz, x, y| -dz * x / (y * y)),
        Zip::Max => update(dz, columns, a, b, |dz, x, y| dz * share(y > x, x == y)),
        Zip::Min => update(dz, columns, a, b, |dz, x, y| dz * share(y < x, x == y)),
    }
}

/// 1 for the winner, a half each for equals, 0 for the loser.
#[inline(always)]
fn share(wins: bool, equal: bool) -> f32 {
    f32::from(wins) + 0.5 * f32::from(equal)
}

/// An input, repeated where it has a single row or column.
#[derive(Clone, Copy)]
struct Operand<'a> {
    values: &'a [f32],
    shape: Shape,
}

/// One row of an input: as many numbers as there are columns, or one number for all.
enum Row<'a> {
    Full(&'a [f32]),
    Single(f32),
}

impl<'a> Operand<'a> {
    fn new(x: &'a Matrix) -> Self {
        Self { values: &x.values, shape: x.shape }
    }

    #[inline(always)]
    fn row(self, index: usize, columns: usize) -> Row<'a> {
        let index = if self.shape[0] == 1 { 0 } else { index };
        if self.shape[1] == columns {
            Row::Full(&self.values[index * columns..(index + 1) * columns])
        } else {
            Row::Single(self.values[index])
        }
    }
}

/// `z = f(x, y)`.
fn combine(
    z: &mut [f32],
    columns: usize,
    a: Operand<'_>,
    b: Operand<'_>,
    f: impl Fn(f32, f32) -> f32 + Sync + Send,
) {
    update(z, columns, a, b, |_, x, y| f(x, y));
}

/// `z = f(z, x, y)`.
fn update(
    z: &mut [f32],
    columns: usize,
    a: Operand<'_>,
    b: Operand<'_>,
    f: impl Fn(f32, f32, f32) -> f32 + Sync + Send,
) {
    parallel::row_chunks(z, columns, |first, rows| update_rows(rows, columns, first, a, b, &f));
}

vectorised! {
    fn update_rows<F: Fn(f32, f32, f32) -> f32>(
        z: &mut [f32],
        columns: usize,
        first: usize,
        a: Operand<'_>,
        b: Operand<'_>,
        f: F,
    ) {
        for (z, index) in z.chunks_exact_mut(columns).zip(first..) {
            match (a.row(index, columns), b.row(index, columns)) {
                (Row::Full(x), Row::Full(y)) => {
                    z.iter_mut().zip(x).zip(y).for_each(|((z, &x), &y)| *z = f(*z, x, y));
                }
                (Row::Full(x), Row::Single(y)) => {
                    z.iter_mut().zip(x).for_each(|(z, &x)| *z = f(*z, x, y));
                }
                (Row::Single(x), Row::Full(y)) => {
                    z.iter_mut().zip(y).for_each(|(z, &y)| *z = f(*z, x, y));
                }
                (Row::Single(x), Row::Single(y)) => z.iter_mut().for_each(|z| *z = f(*z, x, y)),
            }
        }
    }
}

/// Sums a gradient of shape `from` over the directions in which an input of shape `to` was
/// repeated.
fn sum_to(to: Shape, from: Shape, gradient: Vec<f32>) -> Vec<f32> {
    let mut gradient = gradient;
    if to[1] != from[1] {
        gradient = super::reduce::row_sums(&gradient, from[1]);
    }
    if to[0] != from[0] {
        let mut sums = vec![0.0; to[1]];
        column_sums(&gradient, &mut sums, true);
        gradient = sums;
    }
    gradient
}
