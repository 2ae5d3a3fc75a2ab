//! A kernel with its arguments, and which buffers it reads and writes.

use std::rc::Rc;

use crate::Result;
use crate::compile::Module;
use crate::driver::{LaunchShape, Packed};
use crate::memory::Buffer;

/// A part of a buffer, from element `offset` on.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) buffer: Rc<Buffer>,
    pub(crate) offset: usize,
}

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
    /// Writes rows or columns that no other kernel does.
    Part,
    /// Reads, then overwrites.
    Update,
}

/// An argument of a kernel.
#[derive(Clone)]
pub(crate) enum Argument {
    /// A `Mat`: address and stride.
    Matrix(View, Use),
    /// A `Mat` that was not given.
    Nothing,
    /// A plain address.
    Pointer(View, Use),
    Unsigned(u32),
    Signed(i32),
    Float(f32),
    /// A struct: its members in order, filled up with zeros to a size in bytes.
    Struct(Vec<Argument>, usize),
}

impl From<u32> for Argument {
    fn from(value: u32) -> Self {
        Self::Unsigned(value)
    }
}

impl From<i32> for Argument {
    fn from(value: i32) -> Self {
        Self::Signed(value)
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Self {
        Self::Float(value)
    }
}

impl Argument {
    /// Appends the argument as it lies in memory; members are aligned to their size.
    fn pack(&self, bytes: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Matrix(view, _) => {
                align(bytes, 8);
                let address = view.buffer.address()? + 4 * view.offset as u64;
                bytes.extend(address.to_ne_bytes());
                bytes.extend((view.buffer.stride as i64).to_ne_bytes());
            }
            Self::Pointer(view, _) => {
                align(bytes, 8);
                let address = view.buffer.address()? + 4 * view.offset as u64;
                bytes.extend(address.to_ne_bytes());
            }
            Self::Nothing => {
                align(bytes, 8);
                bytes.extend([0; 16]);
            }
            Self::Unsigned(value) => bytes.extend(value.to_ne_bytes()),
            Self::Signed(value) => bytes.extend(value.to_ne_bytes()),
            Self::Float(value) => bytes.extend(value.to_ne_bytes()),
            Self::Struct(members, size) => {
                let start = bytes.len();
                members.iter().try_for_each(|member| member.pack(bytes))?;
                debug_assert!(bytes.len() - start <= *size, "a struct larger than it is");
                bytes.resize(start + size, 0);
            }
        }
        Ok(())
    }

    /// The number, if it is one of this kind.
    pub(crate) fn unsigned(&self) -> Option<u32> {
        match self {
            Self::Unsigned(value) => Some(*value),
            _ => None,
        }
    }

    /// The same for numbers with a sign.
    pub(crate) fn signed(&self) -> Option<i32> {
        match self {
            Self::Signed(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is the matrix that begins there.
    pub(crate) fn is_at(&self, number: u64, offset: usize) -> bool {
        match self {
            Self::Matrix(view, _) => view.buffer.number() == number && view.offset == offset,
            _ => false,
        }
    }

    fn each_use(&self, visit: &mut impl FnMut(&Rc<Buffer>, Use)) {
        match self {
            Self::Matrix(view, use_) | Self::Pointer(view, use_) => visit(&view.buffer, *use_),
            Self::Struct(members, _) => {
                members.iter().for_each(|member| member.each_use(visit));
            }
            _ => {}
        }
    }
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// A kernel to run.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) module: Module,
    pub(crate) kernel: &'static str,
    pub(crate) shape: LaunchShape,
    pub(crate) arguments: Vec<Argument>,
}

impl Launch {
    /// The arguments in memory; every buffer must have its place.
    pub(crate) fn pack(&self) -> Result<Packed> {
        let mut packed = Packed::default();
        for argument in &self.arguments {
            let mut bytes = Vec::new();
            argument.pack(&mut bytes)?;
            packed.push(&bytes);
        }
        Ok(packed)
    }

    /// Visits every buffer with what happens to it.
    pub(crate) fn each_use(&self, mut visit: impl FnMut(&Rc<Buffer>, Use)) {
        self.arguments.iter().for_each(|argument| argument.each_use(&mut visit));
    }

    /// How often it uses the buffer of this number.
    pub(crate) fn uses(&self, number: u64) -> usize {
        let mut count = 0;
        self.each_use(|buffer, _| count += usize::from(buffer.number() == number));
        count
    }

    /// Whether it writes to the buffer of this number.
    pub(crate) fn writes(&self, number: u64) -> bool {
        let mut found = false;
        self.each_use(|buffer, use_| found |= buffer.number() == number && use_ != Use::Read);
        found
    }
}

/// Launches and matrices for tests of recordings, which run nothing.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::tensor::CudaTensor;

    pub(crate) fn tensor(shape: cm_nn::Shape) -> CudaTensor {
        let buffer = Rc::new(Buffer::planned(shape[0] * shape[1], 1));
        CudaTensor { view: View { buffer, offset: 0 }, shape, place: None }
    }

    pub(crate) fn launch(module: Module, kernel: &'static str, arguments: Vec<Argument>) -> Launch {
        let shape = LaunchShape { blocks: [1; 3], threads: 32, shared: 0, cluster: 1 };
        Launch { module, kernel, shape, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_lie_in_memory_as_the_compiler_lays_them_out() {
        let argument = Argument::Struct(
            vec![1_u32.into(), Argument::Nothing, 2.5_f32.into(), (-1_i32).into()],
            40,
        );
        let mut bytes = Vec::new();
        argument.pack(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 40);
        assert_eq!(bytes[..4], 1_u32.to_ne_bytes());
        assert_eq!(bytes[8..24], [0; 16]);
        assert_eq!(bytes[24..28], 2.5_f32.to_ne_bytes());
        assert_eq!(bytes[28..32], (-1_i32).to_ne_bytes());
    }
}
