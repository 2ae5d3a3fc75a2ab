//! Moving rows and columns about; each gradient moves them back.

use super::{DfdxBackend, Matrix};
use crate::{Axis, Result};

pub(super) fn concat(backend: &DfdxBackend, parts: &[&Matrix], axis: Axis) -> Result<Matrix> {
    let places = parts.iter().map(|part| backend.place(part)).collect::<Vec<_>>();
    let sizes = parts.iter().map(|part| part.shape[axis as usize]).collect::<Vec<_>>();
    let total = sizes.iter().sum::<usize>();
    let [rows, columns] = parts[0].shape;
    // Along rows whole matrices follow each other; along columns, one row of each.
    let (shape, lines, unit) = match axis {
        Axis::Rows => ([total, columns], 1, columns),
        Axis::Columns => ([rows, total], rows, 1),
    };
    let mut result = backend.pool().take(shape[0] * shape[1]);
    let width = total * unit;
    let mut start = 0;
    for (part, &size) in parts.iter().zip(&sizes) {
        let length = size * unit;
        for line in 0..lines {
            let target = line * width + start;
            let source = &part.values[line * length..(line + 1) * length];
            result[target..target + length].copy_from_slice(source);
        }
        start += length;
    }
    let inputs = places.iter().collect::<Vec<_>>();
    backend.record(shape, result, &inputs, |_| {
        let places = places.clone();
        move |slots, dy| {
            let mut start = 0;
            for (place, size) in places.iter().zip(sizes) {
                let length = size * unit;
                if let Some(place) = place {
                    let mut part = slots.pool().take(lines * length);
                    for (line, part) in part.chunks_exact_mut(length).enumerate() {
                        let source = line * width + start;
                        part.copy_from_slice(&dy[source..source + length]);
                    }
                    slots.add(place, part)?;
                }
                start += length;
            }
            slots.pool().give(dy);
            Ok(())
        }
    })
}

pub(super) fn slice(
    backend: &DfdxBackend,
    x: &Matrix,
    axis: Axis,
    start: usize,
    count: usize,
) -> Result<Matrix> {
    let place = backend.place(x);
    let [rows, columns] = x.shape;
    // The wanted part of each of `lines` equal lines.
    let (shape, lines, unit) = match axis {
        Axis::Rows => ([count, columns], 1, columns),
        Axis::Columns => ([rows, count], rows, 1),
    };
    let (start, length, width) = (start * unit, count * unit, x.values.len() / lines);
    let mut y = backend.pool().take(lines * length);
    for (y, x) in y.chunks_exact_mut(length).zip(x.values.chunks_exact(width)) {
        y.copy_from_slice(&x[start..start + length]);
    }
    backend.record(shape, y, &[&place], |_| {
        let place = place.clone();
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            slots.write(&place, lines * width, |dx, first| {
                if first {
                    dx.fill(0.0);
                }
                for (dx, dy) in dx.chunks_exact_mut(width).zip(dy.chunks_exact(length)) {
                    let dx = &mut dx[start..start + length];
                    dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy);
                }
            })?;
            slots.pool().give(dy);
            Ok(())
        }
    })
}

pub(super) fn roll(backend: &DfdxBackend, x: &Matrix, shift: usize) -> Result<Matrix> {
    let place = backend.place(x);
    let distance = shift * x.shape[1];
    let mut y = backend.pool().copy(&x.values);
    y.rotate_right(distance);
    backend.record(x.shape, y, &[&place], |_| {
        let place = place.clone();
        move |slots, mut dy| {
            let Some(place) = place else { return Ok(()) };
            dy.rotate_left(distance);
            slots.add(&place, dy)
        }
    })
}

pub(super) fn gather(backend: &DfdxBackend, x: &Matrix, index: &Matrix) -> Result<Matrix> {
    let place = backend.place(x);
    let [rows, columns] = x.shape;
    // The cast truncates, saturates and makes 0 of NaN.
    let sources = index.values.iter().map(|&index| (index as usize).min(rows - 1));
    let sources = sources.collect::<Vec<_>>();
    let mut y = backend.pool().take(sources.len() * columns);
    for (y, &source) in y.chunks_exact_mut(columns).zip(&sources) {
        y.copy_from_slice(&x.values[source * columns..(source + 1) * columns]);
    }
    backend.record([sources.len(), columns], y, &[&place], |_| {
        let place = place.clone();
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            slots.write(&place, rows * columns, |dx, first| {
                if first {
                    dx.fill(0.0);
                }
                for (dy, source) in dy.chunks_exact(columns).zip(sources) {
                    let dx = &mut dx[source * columns..(source + 1) * columns];
                    dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy);
                }
            })?;
            slots.pool().give(dy);
            Ok(())
        }
    })
}

pub(super) fn transpose(backend: &DfdxBackend, x: &Matrix) -> Result<Matrix> {
    let place = backend.place(x);
    let [rows, columns] = x.shape;
    let mut y = backend.pool().take(x.values.len());
    transpose_into(&mut y, &x.values, columns);
    backend.record([columns, rows], y, &[&place], |_| {
        let place = place.clone();
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            let mut dx = slots.pool().take(dy.len());
            transpose_into(&mut dx, &dy, rows);
            slots.pool().give(dy);
            slots.add(&place, dx)
        }
    })
}

/// `y[j, i] = x[i, j]` for `x` with `columns` columns, in blocks that fit the first cache.
fn transpose_into(y: &mut [f32], x: &[f32], columns: usize) {
    const BLOCK: usize = 16;
    let rows = x.len() / columns;
    for row in (0..rows).step_by(BLOCK) {
        for column in (0..columns).step_by(BLOCK) {
            for i in row..(row + BLOCK).min(rows) {
                for j in column..(column + BLOCK).min(columns) {
                    y[j * rows + i] = x[i * columns + j];
                }
            }
        }
    }
}

pub(super) fn diagonal(backend: &DfdxBackend, x: &Matrix) -> Result<Matrix> {
    let place = backend.place(x);
    let n = x.shape[0];
    let y = x.values.iter().step_by(n + 1).copied().collect();
    backend.record([n, 1], y, &[&place], |_| {
        let place = place.clone();
        move |slots, dy| {
            let Some(place) = place else { return Ok(()) };
            slots.write(&place, n * n, |dx, first| {
                if first {
                    dx.fill(0.0);
                }
                dx.iter_mut().step_by(n + 1).zip(&dy).for_each(|(dx, dy)| *dx += dy);
            })
        }
    })
}
