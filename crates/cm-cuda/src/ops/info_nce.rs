//! Cross entropy of square logits against their diagonal.

use cm_nn::{Direction, Result};

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::InfoNce;
use crate::launch::Argument;
use crate::tape::Slots;
use crate::tensor::{CudaTensor, maybe_read, maybe_write};

/// Rows and columns of a block of `info_nce_sums`.
const GROUPS: [usize; 2] = [4, 8];

/// Rows and columns of a part that has log-sum-exps of its own where other kernels make them: as
/// `info_nce.cuh` has them.
const PART: [usize; 2] = [32, 16];

/// How many parts rows and columns of `n` numbers are made of.
pub(crate) fn parts(n: usize) -> [usize; 2] {
    [n.div_ceil(PART[1]), n.div_ceil(PART[0])]
}

pub(crate) fn info_nce(
    backend: &CudaBackend,
    logits: &CudaTensor,
    direction: Direction,
) -> Result<CudaTensor> {
    let place = backend.place(logits);
    let n = logits.shape[0];
    let sums = |shape, is_wanted: bool| is_wanted.then(|| backend.new_tensor(shape)).transpose();
    // There is room for parts, in the place of whole ones: `distances.rs`.
    let [row_parts, column_parts] = parts(n);
    let rows = sums([row_parts, n], direction != Direction::Columns)?;
    let columns = sums([column_parts, n], direction != Direction::Rows)?;
    let blocks = |sums: &Option<CudaTensor>, group: usize| match sums {
        Some(_) => n.div_ceil(group) as u32,
        None => 0,
    };
    let (of_rows, of_columns) = (blocks(&rows, GROUPS[0]), blocks(&columns, GROUPS[1]));
    let arguments = arguments![
        Logits::new(logits.read()).argument(),
        maybe_write(rows.as_ref()),
        maybe_write(columns.as_ref()),
        n as u32,
        of_rows
    ];
    let shared = 4 * (GROUPS[0] * row_parts).max(GROUPS[1] * column_parts);
    let blocks = of_rows + of_columns;
    backend.run(InfoNce, "info_nce_sums", blocks, 256, shared as u32, arguments)?;
    let loss = backend.new_tensor([1, 1])?;
    let arguments = arguments![
        Logits::new(logits.read()).argument(),
        maybe_read(rows.as_ref()),
        maybe_read(columns.as_ref()),
        loss.write(),
        n as u32,
        1_u32,
        1_u32
    ];
    backend.run(InfoNce, "info_nce", 1, 256, 0, arguments)?;
    Ok(backend.record(loss, &[place], || {
        let logits = logits.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dl = backend.new_tensor(logits.shape)?;
            let arguments = arguments![
                Logits::new(logits.read()).argument(),
                maybe_read(rows.as_ref()),
                maybe_read(columns.as_ref()),
                dy.read(),
                dl.write(),
                Argument::Nothing,
                1.0_f32,
                n as u32,
                dl.count()
            ];
            backend.each(InfoNce, "info_nce_gradient", dl.count(), arguments)?;
            slots.add(place, dl);
            Ok(())
        }
    }))
}

/// Where `info_nce_sums` and `info_nce` have their arguments that are looked at.
pub(crate) mod sums {
    pub(crate) const ROWS: usize = 1;
    pub(crate) const COLUMNS: usize = 2;
    pub(crate) const SIZE: usize = 3;
    /// In how many parts `info_nce` has those of rows; of columns next.
    pub(crate) const PARTS: usize = 5;
}

/// Where `info_nce_gradient` has its arguments that are looked at, which are the members of `struct
/// Gradient` up to the factor. The numbers of parts follow there.
pub(crate) mod gradient {
    pub(crate) const RESULT: usize = 4;
    pub(crate) const SCALED: usize = 5;
    pub(crate) const FACTOR: usize = 6;
    pub(crate) const SIZE: usize = 7;
    pub(crate) const PARTS: usize = 7;
}

/// Logits as kernels take them, as their first argument: `scale x + shift + column`.
pub(crate) struct Logits {
    pub(crate) x: Argument,
    pub(crate) column: Argument,
    pub(crate) scale: f32,
    pub(crate) shift: f32,
}

impl Logits {
    /// The matrix `x` itself.
    pub(crate) fn new(x: Argument) -> Self {
        Self { x, column: Argument::Nothing, scale: 1.0, shift: 0.0 }
    }

    /// `struct Logits` of the kernels.
    pub(crate) fn argument(&self) -> Argument {
        let members = arguments![self.x.clone(), self.column.clone(), self.scale, self.shift];
        Argument::Struct(members, 40)
    }
}
