//! What a [`CudaBackend`](crate::CudaBackend) computes with: matrices and cells.

use std::rc::Rc;

use cm_nn::Shape;

use crate::launch::{Argument, Use, View};
use crate::memory::Buffer;
use crate::tape::Place;
use crate::{Error, Result};

/// A matrix of [`CudaBackend`](crate::CudaBackend).
#[derive(Clone)]
pub struct CudaTensor {
    pub(crate) view: View,
    pub(crate) shape: Shape,
    pub(crate) place: Option<Place>,
}

/// A cell of [`CudaBackend`](crate::CudaBackend).
#[derive(Clone)]
pub struct CudaCell {
    pub(crate) buffer: Rc<Buffer>,
    pub(crate) shape: Shape,
}

impl CudaTensor {
    /// Rows and columns.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where the first replica's numbers begin in the device's memory, row by row. They stay there
    /// as long as the matrix or a clone of it.
    pub fn address(&self) -> Result<u64> {
        Ok(self.view.buffer.address()? + 4 * self.view.offset as u64)
    }

    /// A matrix in memory that others keep.
    pub(crate) fn borrowed(shape: Shape, address: u64) -> Result<Self> {
        let buffer = Rc::new(Buffer::borrowed(checked_length(shape)?, address));
        Ok(Self { view: View { buffer, offset: 0 }, shape, place: None })
    }

    /// How many numbers one replica has.
    pub(crate) fn count(&self) -> u32 {
        (self.shape[0] * self.shape[1]) as u32
    }

    pub(crate) fn read(&self) -> Argument {
        Argument::Matrix(self.view.clone(), Use::Read)
    }

    pub(crate) fn write(&self) -> Argument {
        Argument::Matrix(self.view.clone(), Use::Write)
    }

    /// For kernels that write a part of the matrix, or read what they overwrite.
    pub(crate) fn update(&self) -> Argument {
        Argument::Matrix(self.view.clone(), Use::Update)
    }

    /// A constant on the same memory, from element `start` on.
    pub(crate) fn at(&self, start: usize, shape: Shape) -> Self {
        let View { buffer, offset } = self.view.clone();
        Self { view: View { buffer, offset: offset + start }, shape, place: None }
    }

    /// Whether the two are on the same memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |x: &Self| (x.view.buffer.number(), x.view.offset, x.shape);
        place(self) == place(other)
    }

    /// Whether every row is whole groups of four numbers at aligned addresses.
    pub(crate) fn has_whole_quads(&self) -> bool {
        self.shape[1].is_multiple_of(4) && self.view.offset.is_multiple_of(4)
    }
}

impl CudaCell {
    /// A cell on a matrix that begins where its memory does, for gradients with respect to it.
    pub(crate) fn of(x: &CudaTensor) -> Self {
        Self { buffer: x.view.buffer.clone(), shape: x.shape }
    }

    pub(crate) fn buffer(&self) -> &Rc<Buffer> {
        &self.buffer
    }

    pub(crate) fn count(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    pub(crate) fn update(&self) -> Argument {
        self.tensor().update()
    }

    /// The cell's own memory as a constant.
    pub(crate) fn tensor(&self) -> CudaTensor {
        let view = View { buffer: self.buffer.clone(), offset: 0 };
        CudaTensor { view, shape: self.shape, place: None }
    }
}

/// An input that may be missing.
pub(crate) fn maybe_read(x: Option<&CudaTensor>) -> Argument {
    x.map_or(Argument::Nothing, CudaTensor::read)
}

/// An output that may be missing.
pub(crate) fn maybe_write(x: Option<&CudaTensor>) -> Argument {
    x.map_or(Argument::Nothing, CudaTensor::write)
}

/// Refuses more numbers than kernels count.
pub(crate) fn checked_length([rows, columns]: Shape) -> Result<usize> {
    match rows.checked_mul(columns) {
        Some(length) if length < 1 << 31 => Ok(length),
        length => Err(Error::TooLarge(length.unwrap_or(usize::MAX))),
    }
}
