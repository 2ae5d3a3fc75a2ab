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

pub(crate) fn info_nce(
    backend: &CudaBackend,
    logits: &CudaTensor,
    direction: Direction,
) -> Result<CudaTensor> {
    let place = backend.place(logits);
    let n = logits.shape[0];
    let sums = |shape, is_wanted: bool| is_wanted.then(|| backend.new_tensor(shape)).transpose();
    let rows = sums([n, 1], direction != Direction::Columns)?;
    let columns = sums([1, n], direction != Direction::Rows)?;
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
    backend.run(InfoNce, "info_nce_sums", of_rows + of_columns, 256, 0, arguments)?;
    let loss = backend.new_tensor([1, 1])?;
    let arguments = arguments![
        Logits::new(logits.read()).argument(),
        maybe_read(rows.as_ref()),
        maybe_read(columns.as_ref()),
        loss.write(),
        n as u32
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

/// Where `info_nce_gradient` has its arguments that are looked at.
pub(crate) mod gradient {
    pub(crate) const RESULT: usize = 4;
    pub(crate) const SCALED: usize = 5;
    pub(crate) const FACTOR: usize = 6;
    pub(crate) const SIZE: usize = 7;
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
