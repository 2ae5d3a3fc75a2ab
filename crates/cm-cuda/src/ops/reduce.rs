//! Sums, means, maxima and log-sum-exps over rows, columns or everything.

use cm_nn::{Over, Reduce, Result};

use super::arguments;
use super::chain::Chain;
use crate::backend::CudaBackend;
use crate::compile::Module;
use crate::tape::Slots;
use crate::tensor::{CudaTensor, maybe_read};

pub(crate) fn reduce(
    backend: &CudaBackend,
    x: &CudaTensor,
    over: Over,
    f: Reduce,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let y = apply(backend, x, over, f)?;
    let result = y.clone();
    Ok(backend.record(y, &[place], || {
        let x = x.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            slots.add(place, gradient(backend, &x, &result, &dy, over, f)?);
            Ok(())
        }
    }))
}

/// Columns of a block, as `reduce.cu` has it.
const COLUMNS: usize = 8;
/// Numbers that one block reduces alone.
const MOST_IN_A_BLOCK: usize = 8192;

/// The reduction alone.
pub(crate) fn apply(
    backend: &CudaBackend,
    x: &CudaTensor,
    over: Over,
    f: Reduce,
) -> Result<CudaTensor> {
    let [rows, columns] = x.shape;
    let code = f as i32;
    match over {
        Over::Columns => {
            let y = backend.new_tensor([rows, 1])?;
            by_blocks(backend, x, &y, rows, columns, code)?;
            Ok(y)
        }
        // Row by row first, where one block would take long. Rows are of equal length: a mean of
        // means is the mean.
        Over::All if rows > 1 && rows * columns > MOST_IN_A_BLOCK => {
            let parts = apply(backend, x, Over::Columns, f)?;
            apply(backend, &parts, Over::All, f)
        }
        Over::All => {
            let y = backend.new_tensor([1, 1])?;
            by_blocks(backend, x, &y, 1, rows * columns, code)?;
            Ok(y)
        }
        Over::Rows => {
            let y = backend.new_tensor([1, columns])?;
            let blocks = columns.div_ceil(COLUMNS) as u32;
            let arguments = arguments![x.read(), y.write(), rows as u32, columns as u32, code];
            backend.run(Module::Reduce, "reduce_columns", blocks, 256, 0, arguments)?;
            Ok(y)
        }
    }
}

/// One block for each of `groups` groups of `length` neighbouring numbers, or one warp if these are
/// few.
fn by_blocks(
    backend: &CudaBackend,
    x: &CudaTensor,
    y: &CudaTensor,
    groups: usize,
    length: usize,
    code: i32,
) -> Result<()> {
    if length <= 32 {
        let arguments = arguments![x.read(), y.write(), groups as u32, length as u32, code];
        return backend.warps(Module::Reduce, "reduce_short_rows", groups, arguments);
    }
    let threads = match length {
        0..=1024 => 128,
        1025..=8192 => 256,
        _ => 1024,
    };
    let arguments = arguments![x.read(), y.write(), length as u32, code];
    backend.run(Module::Reduce, "reduce_rows", groups as u32, threads, 0, arguments)
}

fn gradient(
    backend: &CudaBackend,
    x: &CudaTensor,
    y: &CudaTensor,
    dy: &CudaTensor,
    over: Over,
    f: Reduce,
) -> Result<CudaTensor> {
    let [rows, columns] = x.shape.map(|size| size as u32);
    // Groups, their length, the steps from group to group and from number to number, and which
    // group an element at a row and column is in.
    let (groups, length, apart, step, by_row, by_column) = match over {
        Over::Columns => (rows, columns, columns, 1, 1, 0),
        Over::Rows => (columns, rows, 1, columns, 0, 1),
        Over::All => (1, rows * columns, 0, 1, 0, 0),
    };
    if let Reduce::Sum | Reduce::Mean = f {
        let spread = Chain::load_at(dy, [by_row, by_column], x.shape);
        let spread = if f == Reduce::Mean { spread.divide(length as f32) } else { spread };
        return spread.run(backend);
    }
    let mut counts = None;
    if f == Reduce::Max {
        let found = backend.new_tensor([1, groups as usize])?;
        let arguments = arguments![x.read(), y.read(), found.write(), groups, length, apart, step];
        let blocks = groups.div_ceil(8);
        backend.run(Module::Reduce, "count_equal", blocks, 256, 0, arguments)?;
        counts = Some(found);
    }
    let dx = backend.new_tensor(x.shape)?;
    let arguments = arguments![
        x.read(),
        y.read(),
        dy.read(),
        maybe_read(counts.as_ref()),
        dx.write(),
        columns,
        x.count(),
        by_row,
        by_column,
        f as i32
    ];
    backend.each(Module::Reduce, "reduce_gradient", x.count(), arguments)?;
    Ok(dx)
}

/// The column sums of `x`, or of the products of `x` and `y`.
pub(crate) fn column_sums(
    backend: &CudaBackend,
    x: &CudaTensor,
    y: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    let [rows, columns] = x.shape;
    let sums = backend.new_tensor([1, columns])?;
    let arguments = arguments![x.read(), maybe_read(y), sums.write(), rows as u32, columns as u32];
    let blocks = columns.div_ceil(COLUMNS) as u32;
    backend.run(Module::Reduce, "column_sums", blocks, 256, 0, arguments)?;
    Ok(sums)
}
