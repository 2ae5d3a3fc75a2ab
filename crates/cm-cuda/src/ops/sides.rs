//! Sums of gradients of IQE by rows and of matrices, in one go.

use cm_nn::{Result, Shape};

use super::arguments;
use super::iqe::Groups;
use crate::backend::CudaBackend;
use crate::compile::Module::Operands;
use crate::launch::Argument;
use crate::operands::{PACK_THREADS, squares};
use crate::tensor::{CudaTensor, maybe_read};

/// The gradient of one side of distances by rows: what it is made of, since sums of several are
/// made in one go.
pub(crate) struct Side {
    pub(super) groups: Groups,
    pub(super) rows: usize,
    /// Of every feature, whether a piece of its group's union begins there, and ends there.
    pub(super) marks: CudaTensor,
    pub(super) grad: CudaTensor,
    pub(super) args: Option<CudaTensor>,
    pub(super) logit: Option<CudaTensor>,
    pub(super) right: bool,
}

/// A part of a gradient, from row `first_row` of it on.
pub(crate) enum Rows {
    Matrix { tensor: CudaTensor, first_row: usize },
    Side { side: Box<Side>, first_row: usize },
}

impl Rows {
    /// The same as part of something in which it begins so many rows later.
    pub(crate) fn later(mut self, rows: usize) -> Self {
        let (Self::Matrix { first_row, .. } | Self::Side { first_row, .. }) = &mut self;
        *first_row += rows;
        self
    }

    fn argument(&self, columns: usize) -> Vec<Argument> {
        let place = |first_row: &usize, rows: usize, right: bool| {
            arguments![*first_row as i32, rows as i32, i32::from(right)]
        };
        match self {
            Self::Matrix { tensor, first_row } => {
                let none = [Argument::Nothing, Argument::Nothing, Argument::Nothing];
                let mut members = vec![tensor.read()];
                members.extend(none);
                let no_weight = Groups {
                    count: 1,
                    size: columns,
                    total_weight: 0.0,
                    maximum_weight: 0.0,
                    kind: 0,
                };
                members.extend(no_weight.members());
                members.extend(place(first_row, tensor.shape[0], false));
                members
            }
            Self::Side { side, first_row } => {
                let mut members = arguments![
                    side.marks.read(),
                    side.grad.read(),
                    maybe_read(side.args.as_ref()),
                    maybe_read(side.logit.as_ref())
                ];
                members.extend(side.groups.members());
                members.extend(place(first_row, side.rows, side.right));
                members
            }
        }
    }
}

/// How many parts one kernel adds, and bytes of `struct Parts`.
const PARTS: (usize, usize) = (8, 8 * 96);

/// The sum of parts, zero where there are none, times `factor` if it is given.
pub(crate) fn add_sides(
    backend: &CudaBackend,
    shape: Shape,
    mut parts: Vec<Rows>,
    factor: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    while parts.len() > PARTS.0 {
        let rest = parts.split_off(PARTS.0);
        let tensor = add_sides(backend, shape, parts, None)?;
        parts = vec![Rows::Matrix { tensor, first_row: 0 }];
        parts.extend(rest);
    }
    let members = parts.iter().flat_map(|part| part.argument(shape[1])).collect();
    let y = backend.new_tensor(shape)?;
    let arguments = arguments![
        Argument::Struct(members, PARTS.1),
        parts.len() as u32,
        y.write(),
        shape[0] as i32,
        shape[1] as i32,
        maybe_read(factor),
        Argument::Nothing,
        Argument::Nothing,
        Argument::Nothing
    ];
    let module = Operands(backend.precision());
    backend.run(module, "add_sides", squares(shape), PACK_THREADS, 0, arguments)?;
    backend.note_maker(&y);
    Ok(y)
}
