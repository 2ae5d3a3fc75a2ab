//! Moving rows and columns about; each gradient moves them back.
//!
//! Runs of rows are views of the same memory: cutting them out costs nothing.

use cm_nn::{Axis, Result, Shape};

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::{self, Layout};
use crate::launch::Argument;
use crate::operands::{PACK_THREADS, squares};
use crate::tape::Slots;
use crate::tensor::CudaTensor;

pub(crate) fn concat(
    backend: &CudaBackend,
    parts: &[&CudaTensor],
    axis: Axis,
) -> Result<CudaTensor> {
    let places = parts.iter().map(|part| backend.place(part)).collect::<Vec<_>>();
    let sizes = parts.iter().map(|part| part.shape[axis as usize]).collect::<Vec<_>>();
    let y = joined(backend, parts, axis)?;
    let (inputs, shape) = (places.clone(), y.shape);
    Ok(backend.record_place(y, &inputs, |own| {
        move |backend: &CudaBackend, slots: &mut Slots| {
            let most = if axis == Axis::Columns { SOURCES.0 } else { 1 };
            let Some(rows) = slots.take_rows(backend, own, shape, most)? else { return Ok(()) };
            let mut start = 0;
            for (place, size) in places.into_iter().zip(sizes) {
                if let Some(place) = place {
                    let dx = match axis {
                        Axis::Rows => cut(backend, &rows[0].0, axis, start, size)?,
                        Axis::Columns => cut_columns(backend, &rows, start, size)?,
                    };
                    slots.add(place, dx);
                }
                start += size;
            }
            Ok(())
        }
    }))
}

/// How many matrices one kernel puts together, and bytes of `struct Source`.
const SOURCES: (usize, usize) = (8, 32);

/// The matrices below each other or side by side, as a constant.
fn joined(backend: &CudaBackend, parts: &[&CudaTensor], axis: Axis) -> Result<CudaTensor> {
    if let Some((first, rest)) = parts.split_at_checked(SOURCES.0)
        && !rest.is_empty()
    {
        let first = joined(backend, first, axis)?;
        let parts = std::iter::once(&first).chain(rest.iter().copied()).collect::<Vec<_>>();
        return joined(backend, &parts, axis);
    }
    let (mut shape, mut sources) = (parts[0].shape, Vec::new());
    shape[axis as usize] = 0;
    for part in parts {
        let (start, size) = (shape[axis as usize], part.shape[axis as usize]);
        sources.push(Source { x: (*part).clone(), start, size, pitch: part.shape[1] });
        shape[axis as usize] += size;
    }
    put_together(backend, shape, &sources, axis)
}

/// Rows or columns of a result, from `start` on.
struct Source {
    x: CudaTensor,
    start: usize,
    size: usize,
    /// How far apart its rows begin.
    pitch: usize,
}

impl Source {
    /// Whether it begins, ends and has its rows at whole groups of four numbers.
    fn is_wide(&self, axis: Axis) -> bool {
        let along = [self.start, self.size].into_iter().filter(|_| axis == Axis::Columns);
        [self.x.view.offset, self.pitch].into_iter().chain(along).all(|size| size.is_multiple_of(4))
    }
}

/// A matrix of at most as many sources as one kernel takes; as operands too if products ask.
fn put_together(
    backend: &CudaBackend,
    shape: Shape,
    sources: &[Source],
    axis: Axis,
) -> Result<CudaTensor> {
    let members = sources.iter().flat_map(|Source { x, start, size, pitch }| {
        arguments![x.read(), *start as i32, *size as i32, *pitch as i32, 0_i32]
    });
    let y = backend.new_tensor(shape)?;
    let wide = y.has_whole_quads() && sources.iter().all(|source| source.is_wide(axis));
    let arguments = arguments![
        Argument::Struct(members.collect(), SOURCES.0 * SOURCES.1),
        sources.len() as u32,
        y.write(),
        shape[0] as i32,
        shape[1] as i32,
        i32::from(axis == Axis::Rows),
        i32::from(wide),
        Argument::Nothing,
        Argument::Nothing,
        Argument::Nothing
    ];
    let module = Module::Operands(backend.precision());
    backend.run(module, "concat", squares(shape), PACK_THREADS, 0, arguments)?;
    backend.note_maker(&y);
    Ok(y)
}

pub(crate) fn slice(
    backend: &CudaBackend,
    x: &CudaTensor,
    axis: Axis,
    start: usize,
    count: usize,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let y = cut(backend, x, axis, start, count)?;
    let (shape, cut_shape) = (x.shape, y.shape);
    Ok(backend.record_place(y, &[place], |own| {
        move |backend: &CudaBackend, slots: &mut Slots| {
            let Some(place) = place else { return Ok(()) };
            match axis {
                Axis::Rows => slots.hand_on(backend, own, cut_shape, place, start),
                Axis::Columns => {
                    if let Some(dy) = slots.take(backend, own, cut_shape)? {
                        slots.add(place, pad(backend, &dy, shape, start)?);
                    }
                    Ok(())
                }
            }
        }
    }))
}

/// Some rows or columns, as a constant.
fn cut(
    backend: &CudaBackend,
    x: &CudaTensor,
    axis: Axis,
    start: usize,
    count: usize,
) -> Result<CudaTensor> {
    let columns = x.shape[1];
    match axis {
        Axis::Rows => Ok(x.at(start * columns, [count, columns])),
        Axis::Columns => cut_columns(backend, &[(x.clone(), 0)], start, count),
    }
}

/// Some columns of a few matrices below each other, each with its first row, as a constant.
fn cut_columns(
    backend: &CudaBackend,
    rows: &[(CudaTensor, usize)],
    start: usize,
    count: usize,
) -> Result<CudaTensor> {
    let sources = rows.iter().map(|(x, first_row)| {
        let [size, pitch] = x.shape;
        Source { x: x.at(start, [size, count]), start: *first_row, size, pitch }
    });
    let sources = sources.collect::<Vec<_>>();
    let size = sources.iter().map(|source| source.size).sum();
    put_together(backend, [size, count], &sources, Axis::Rows)
}

/// `x` as the columns from `start` on of zeros of shape `shape`.
fn pad(backend: &CudaBackend, x: &CudaTensor, shape: Shape, start: usize) -> Result<CudaTensor> {
    let y = backend.new_tensor(shape)?;
    let arguments = arguments![
        x.read(),
        y.write(),
        y.count(),
        shape[1] as u32,
        start as u32,
        x.shape[1] as u32
    ];
    backend.each(Layout, "pad_columns", y.count(), arguments)?;
    Ok(y)
}

pub(crate) fn roll(backend: &CudaBackend, x: &CudaTensor, shift: usize) -> Result<CudaTensor> {
    let place = backend.place(x);
    let distance = (shift * x.shape[1]) as u32;
    let y = rotate(backend, x, distance)?;
    Ok(backend.record(y, &[place], || {
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let back = if distance == 0 { 0 } else { dy.count() - distance };
            slots.add(place, rotate(backend, &dy, back)?);
            Ok(())
        }
    }))
}

fn rotate(backend: &CudaBackend, x: &CudaTensor, distance: u32) -> Result<CudaTensor> {
    let y = backend.new_tensor(x.shape)?;
    let arguments = arguments![x.read(), y.write(), x.count(), distance];
    backend.each(Layout, "rotate", x.count(), arguments)?;
    Ok(y)
}

pub(crate) fn gather(
    backend: &CudaBackend,
    x: &CudaTensor,
    index: &CudaTensor,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let ([rows, columns], taken) = (x.shape, index.shape[0]);
    let y = backend.new_tensor([taken, columns])?;
    let arguments =
        arguments![x.read(), index.read(), y.write(), rows as u32, columns as u32, y.count()];
    backend.each(Layout, "gather", y.count(), arguments)?;
    Ok(backend.record(y, &[place], || {
        let index = index.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = backend.new_tensor([rows, columns])?;
            let arguments = arguments![
                dy.read(),
                index.read(),
                dx.write(),
                rows as u32,
                columns as u32,
                taken as u32
            ];
            let threads = columns.next_multiple_of(32).min(256) as u32;
            backend.run(Layout, "gather_gradient", rows as u32, threads, 0, arguments)?;
            slots.add(place, dx);
            Ok(())
        }
    }))
}

pub(crate) fn transpose(backend: &CudaBackend, x: &CudaTensor) -> Result<CudaTensor> {
    let place = backend.place(x);
    let y = transposed(backend, x)?;
    Ok(backend.record(y, &[place], || {
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            slots.add(place, transposed(backend, &dy)?);
            Ok(())
        }
    }))
}

/// The transpose, as a constant.
pub(crate) fn transposed(backend: &CudaBackend, x: &CudaTensor) -> Result<CudaTensor> {
    let [rows, columns] = x.shape;
    let y = backend.new_tensor([columns, rows])?;
    let blocks = (rows.div_ceil(32) * columns.div_ceil(32)) as u32;
    let arguments = arguments![x.read(), y.write(), rows as u32, columns as u32];
    backend.run(Layout, "transpose", blocks, 256, 0, arguments)?;
    Ok(y)
}

pub(crate) fn diagonal(backend: &CudaBackend, x: &CudaTensor) -> Result<CudaTensor> {
    let place = backend.place(x);
    let n = x.shape[0];
    let y = backend.new_tensor([n, 1])?;
    let arguments = arguments![x.read(), y.write(), n as u32];
    backend.each(Layout, "diagonal", n as u32, arguments)?;
    Ok(backend.record(y, &[place], || {
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = backend.new_tensor([n, n])?;
            let arguments = arguments![dy.read(), dx.write(), n as u32, dx.count()];
            backend.each(Layout, "diagonal_gradient", dx.count(), arguments)?;
            slots.add(place, dx);
            Ok(())
        }
    }))
}
