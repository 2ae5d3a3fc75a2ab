//! Functions of the numbers at one place of several matrices, one after the other, by one kernel.
//!
//! An operation is a chain that loads a number and does one thing to it. In a recorded step those
//! that follow each other become one (`fuse.rs`).

use cm_nn::{Result, Shape, Zip};

use super::arguments;
use crate::backend::{CudaBackend, elementwise_shape};
use crate::compile::Module;
use crate::launch::{Argument, Launch};
use crate::tensor::CudaTensor;

/// What is done to the number that a chain has come to; the codes are those of `chain.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Is replaced by that of `x`.
    Load,
    /// `low value + high`.
    Affine,
    /// A function of it.
    Map,
    /// Times a function's derivative at `x`.
    MapGradient,
    /// A function of it and `x`.
    Zip,
    /// A function of `x` and it.
    ZipRight,
    /// Times the derivative of a function of `x` and `y` by `x`.
    LeftGradient,
    /// The same by `y`.
    RightGradient,
    /// Divided by `low`.
    Divide,
    /// As it was, once its product with the derivative by `x` is stored.
    LeftAside,
}

/// Steps that one kernel takes, and bytes of one.
pub(crate) const STEPS: (usize, usize) = (12, 80);

/// Where the members of a step lie that are looked at.
pub(crate) mod member {
    pub(crate) const X: usize = 0;
    pub(crate) const OUT: usize = 2;
    pub(crate) const X_ROW: usize = 3;
    pub(crate) const X_COLUMN: usize = 4;
    pub(crate) const OP: usize = 7;
    pub(crate) const F: usize = 8;
    pub(crate) const LOW: usize = 9;
    pub(crate) const HIGH: usize = 10;
}

/// What is done to each number of a matrix, and to which shape others are repeated.
pub(crate) struct Chain {
    shape: Shape,
    steps: Vec<Argument>,
}

impl Chain {
    /// Begins with the numbers of `x`, repeated to `shape`.
    pub(crate) fn load(x: &CudaTensor, shape: Shape) -> Self {
        Self { shape, steps: Vec::new() }.step(Op::Load, 0, [0.0; 2], [Some(x), None])
    }

    /// Begins with the numbers of `x`, those of a row and a column at the given steps.
    pub(crate) fn load_at(x: &CudaTensor, [row, column]: [u32; 2], shape: Shape) -> Self {
        let mut chain = Self::load(x, shape);
        if let Some(Argument::Struct(members, _)) = chain.steps.last_mut() {
            members[member::X_ROW] = Argument::Unsigned(row);
            members[member::X_COLUMN] = Argument::Unsigned(column);
        }
        chain
    }

    pub(crate) fn affine(self, scale: f32, shift: f32) -> Self {
        self.step(Op::Affine, 0, [scale, shift], [None, None])
    }

    pub(crate) fn divide(self, by: f32) -> Self {
        self.step(Op::Divide, 0, [by, 0.0], [None, None])
    }

    /// The function with this number in `functions.cuh`.
    pub(crate) fn map(self, f: i32, bounds: [f32; 2]) -> Self {
        self.step(Op::Map, f, bounds, [None, None])
    }

    pub(crate) fn map_gradient(self, f: i32, bounds: [f32; 2], x: &CudaTensor) -> Self {
        self.step(Op::MapGradient, f, bounds, [Some(x), None])
    }

    pub(crate) fn zip(self, f: Zip, x: &CudaTensor) -> Self {
        self.step(Op::Zip, f as i32, [0.0; 2], [Some(x), None])
    }

    /// The gradient of the left (`side` 0) or right input of a function of two numbers.
    pub(crate) fn zip_gradient(self, f: Zip, side: usize, [x, y]: [&CudaTensor; 2]) -> Self {
        let op = if side == 0 { Op::LeftGradient } else { Op::RightGradient };
        self.step(op, f as i32, [0.0; 2], [Some(x), Some(y)])
    }

    /// The gradients of both inputs: the left one is stored in `left`, and the chain comes to the
    /// right one.
    pub(crate) fn zip_gradients(self, f: Zip, [x, y]: [&CudaTensor; 2], left: &CudaTensor) -> Self {
        let mut chain = self.step(Op::LeftAside, f as i32, [0.0; 2], [Some(x), Some(y)]);
        if let Some(Argument::Struct(members, _)) = chain.steps.last_mut() {
            members[member::OUT] = left.write();
        }
        chain.zip_gradient(f, 1, [x, y])
    }

    fn step(
        mut self,
        op: Op,
        f: i32,
        [low, high]: [f32; 2],
        read: [Option<&CudaTensor>; 2],
    ) -> Self {
        let [x, y] = read.map(crate::tensor::maybe_read);
        let [[x_row, x_column], [y_row, y_column]] = read.map(|x| x.map_or([0; 2], steps_of));
        let members = arguments![
            x,
            y,
            Argument::Nothing,
            x_row,
            x_column,
            y_row,
            y_column,
            op as i32,
            f,
            low,
            high
        ];
        self.steps.push(Argument::Struct(members, STEPS.1));
        self
    }

    /// Runs the chain; what it comes to is a new matrix.
    pub(crate) fn run(self, backend: &CudaBackend) -> Result<CudaTensor> {
        let y = backend.new_tensor(self.shape)?;
        backend.submit(self.launch(&y, backend.replicas()))?;
        Ok(y)
    }

    /// The kernel that stores what the chain comes to in `y`.
    pub(crate) fn launch(mut self, y: &CudaTensor, replicas: usize) -> Launch {
        if let Some(Argument::Struct(members, _)) = self.steps.last_mut() {
            members[member::OUT] = y.write();
        }
        let count = y.count();
        let steps = self.steps.len() as u32;
        let mut shape = elementwise_shape(count, replicas);
        let is_many = count as usize * replicas >= MANY;
        if is_many {
            shape.threads /= 4;
        }
        Launch {
            module: Module::Chain,
            kernel: if is_many { "chain_of_many" } else { "chain" },
            shape,
            arguments: arguments![
                Argument::Struct(self.steps, STEPS.0 * STEPS.1),
                steps,
                self.shape[1] as u32,
                count
            ],
        }
    }
}

/// Of so many numbers in all replicas a thread has four.
const MANY: usize = 1 << 17;

/// Distances between neighbouring rows and columns: 0 where they are repeated.
fn steps_of(x: &CudaTensor) -> [u32; 2] {
    let [rows, columns] = x.shape;
    [if rows == 1 { 0 } else { columns as u32 }, u32::from(columns > 1)]
}
