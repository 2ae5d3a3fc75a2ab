//! Matrix products: which kernel, in which tiles.

use cm_nn::{Activation, Result, Shape};

use super::arguments;
use super::elementwise::activation_code;
use crate::Precision;
use crate::backend::CudaBackend;
use crate::compile::Module;
use crate::driver::LaunchShape;
use crate::launch::Argument;
use crate::operands::{Form, SIDE};
use crate::tensor::{CudaTensor, maybe_read, maybe_write};

/// Which factor of a product is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Neither.
    Plain,
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// A matrix product.
pub(crate) struct Product {
    left: CudaTensor,
    right: CudaTensor,
    kind: Kind,
    sums: Option<ColumnSums>,
}

/// The sums of the right factor's columns.
pub(crate) struct ColumnSums {
    /// Over 32 rows each.
    parts: CudaTensor,
    /// What is added to them.
    before: Option<CudaTensor>,
    /// Where they go.
    sums: CudaTensor,
}

/// What happens to a product before it is stored: `(f(z + bias) + addend) factor`.
pub(crate) struct Finish<'a> {
    pub(crate) bias: Option<&'a CudaTensor>,
    pub(crate) activation: Activation,
    /// Receives `f'(z + bias)`.
    pub(crate) slope: Option<&'a CudaTensor>,
    pub(crate) factor: Option<&'a CudaTensor>,
    pub(crate) addend: Option<&'a CudaTensor>,
}

impl Finish<'_> {
    /// The product itself.
    pub(crate) const NONE: Self = Self {
        bias: None,
        activation: Activation::Identity,
        slope: None,
        factor: None,
        addend: None,
    };

    /// Whether rows of the result `y` and of all that belongs to it are whole groups of four.
    fn has_whole_quads(&self, y: &CudaTensor) -> bool {
        let given = [self.bias, self.slope, self.factor, self.addend, Some(y)];
        given.into_iter().flatten().all(CudaTensor::has_whole_quads)
    }

    /// As kernels take it, with places for sums of columns for those that have them.
    fn argument(&self, sums: &[Argument]) -> Argument {
        let mut members = vec![
            maybe_read(self.bias),
            maybe_write(self.slope),
            maybe_read(self.factor),
            maybe_read(self.addend),
        ];
        members.extend(sums.iter().cloned());
        let bytes = 16 * members.len() + 8;
        members.push(Argument::Signed(activation_code(self.activation)));
        Argument::Struct(members, bytes)
    }
}

impl Product {
    pub(crate) fn new(left: &CudaTensor, right: &CudaTensor, kind: Kind) -> Self {
        Self { left: left.clone(), right: right.clone(), kind, sums: None }
    }

    /// Whether [`sum_columns`](Self::sum_columns) is possible.
    pub(crate) fn can_sum(backend: &CudaBackend) -> bool {
        has_warpgroups(backend)
    }

    /// Computes the sums of the right factor's columns, and of them and `before`, as well, beside
    /// the product itself: they are there when the product is.
    pub(crate) fn sum_columns(
        &mut self,
        backend: &CudaBackend,
        before: Option<CudaTensor>,
    ) -> Result<CudaTensor> {
        debug_assert_eq!(self.kind, Kind::Left);
        let sums = backend.new_tensor([1, self.right.shape[1]])?;
        let parts = backend.operand(&self.right, Form::Sums)?;
        self.sums = Some(ColumnSums { parts, before, sums: sums.clone() });
        Ok(sums)
    }

    /// Whether `x` is what its sums of columns become.
    pub(crate) fn has_sums(&self, x: &CudaTensor) -> bool {
        self.sums.as_ref().is_some_and(|own| own.sums.is_same(x))
    }

    /// `(products + addend) factor`; `None` if there are no products.
    pub(crate) fn sum_up(
        backend: &CudaBackend,
        products: &[Self],
        addend: Option<CudaTensor>,
        factor: Option<&CudaTensor>,
    ) -> Result<Option<CudaTensor>> {
        let runs = products.chunk_by(|a, b| has_warpgroups(backend) && a.can_join(b));
        let runs = runs.flat_map(|run| run.chunks(FACTORS)).collect::<Vec<_>>();
        runs.iter().enumerate().try_fold(addend, |addend, (index, run)| {
            let factor = factor.filter(|_| index + 1 == runs.len());
            let finish = Finish { addend: addend.as_ref(), factor, ..Finish::NONE };
            Self::run_all(backend, run, &finish).map(Some)
        })
    }

    /// Whether the sum of the two is one kernel: gradients of what several layers see, if they are
    /// so small that most of the time is waiting. Those of parameters are better off one by one, as
    /// soon as each can be.
    fn can_join(&self, other: &Self) -> bool {
        let (shape, _) = self.sizes();
        [self.kind, other.kind] == [Kind::Right; 2]
            && self.sizes() == other.sizes()
            && tiles(shape, [SIDE; 2]) < FEW
    }

    pub(crate) fn run(self, backend: &CudaBackend, finish: &Finish<'_>) -> Result<CudaTensor> {
        Self::run_all(backend, &[self], finish)
    }

    /// The sum of products of the same sizes.
    fn run_all(
        backend: &CudaBackend,
        products: &[Self],
        finish: &Finish<'_>,
    ) -> Result<CudaTensor> {
        if has_warpgroups(backend) {
            Self::on_warpgroups(backend, products, finish)
        } else {
            products[0].on_warps(backend, finish)
        }
    }

    /// Rows, columns and terms of each sum.
    fn sizes(&self) -> (Shape, usize) {
        let ([a, b], [c, d]) = (self.left.shape, self.right.shape);
        match self.kind {
            Kind::Plain => ([a, d], b),
            Kind::Left => ([b, d], a),
            Kind::Right => ([a, c], b),
        }
    }

    /// By `mma.sync`, or without tensor cores in the highest precision: the largest tile that has
    /// room and still gives every multiprocessor work. The choice does not change the result.
    fn on_warps(&self, backend: &CudaBackend, finish: &Finish<'_>) -> Result<CudaTensor> {
        let (shape, depth) = self.sizes();
        let properties = backend.device().properties();
        let enough = properties.multiprocessors as usize;
        let shared = |tile: &Tile| {
            let (deep, wide) = (tile.side * 36, 32 * (tile.side + 8));
            let floats = match self.kind {
                Kind::Plain => deep + wide,
                Kind::Left => wide + wide,
                Kind::Right => deep + deep,
            };
            (tile.stages * floats * 4) as u32
        };
        let fits = |tile: &Tile| {
            tiles(shape, [tile.side; 2]) * backend.replicas() >= enough
                && shared(tile) <= properties.shared
        };
        let index = TILES.iter().position(fits).unwrap_or(2);
        let tile = &TILES[index];
        let names = match self.kind {
            Kind::Plain => ["plain_128", "plain_64", "plain_32"],
            Kind::Left => ["left_128", "left_64", "left_32"],
            Kind::Right => ["right_128", "right_64", "right_32"],
        };
        let blocks = [tiles(shape, [tile.side; 2]) as u32, 1, backend.replicas() as u32];
        let (threads, shared) = (tile.threads, shared(tile));
        let y = backend.new_tensor(shape)?;
        let is_wide = |x: &CudaTensor| i32::from(x.has_whole_quads());
        let wide = is_wide(&self.left)
            + 2 * is_wide(&self.right)
            + 4 * i32::from(finish.has_whole_quads(&y));
        let arguments = arguments![
            self.left.read(),
            self.right.read(),
            y.write(),
            shape[0] as i32,
            shape[1] as i32,
            depth as i32,
            self.left.shape[1] as i32,
            self.right.shape[1] as i32,
            wide,
            finish.argument(&[])
        ];
        let shape = LaunchShape { blocks, threads, shared, cluster: 1 };
        backend.run_shaped(Module::Product(backend.precision()), names[index], shape, arguments)?;
        Ok(y)
    }

    fn on_warpgroups(
        backend: &CudaBackend,
        products: &[Self],
        finish: &Finish<'_>,
    ) -> Result<CudaTensor> {
        let first = &products[0];
        let (shape, depth) = first.sizes();
        let (left, right) = match first.kind {
            Kind::Plain => (Form::Rows, Form::Columns),
            Kind::Left => (Form::Columns, Form::Columns),
            Kind::Right => (Form::Rows, Form::Rows),
        };
        let factors = products.iter().map(|product| {
            let left = backend.operand(&product.left, left)?;
            Ok([left, backend.operand(&product.right, right)?])
        });
        let factors = factors.collect::<Result<_>>()?;
        let (precision, squares) = (backend.precision(), depth.div_ceil(SIDE));
        let operands = Operands { factors, shape, squares, fold: squares, precision };
        operands.multiply(backend, finish, first.sums.as_ref())
    }
}

/// How many products one kernel sums up.
const FACTORS: usize = 4;
/// Tiles of 64 x 64, so few that halves of them still leave room for other kernels.
const FEW: usize = 64;

/// The sum of a few products of operands as `operand.cuh` has them.
pub(crate) struct Operands {
    /// Left and right of each; of several, those that [`Product::sum_up`] joins.
    pub(crate) factors: Vec<[CudaTensor; 2]>,
    pub(crate) shape: Shape,
    /// How many squares of 64 the sums of each have terms in.
    pub(crate) squares: usize,
    /// How many of them a left operand has: they are taken once or twice.
    pub(crate) fold: usize,
    pub(crate) precision: Precision,
}

impl Operands {
    /// By `wgmma`, in tiles of 128 x 128 if there are enough of them, else in smaller ones: kernels
    /// that leave room run side by side. Where there are nearly enough, each sum is split, and the
    /// blocks of a cluster take one part each. Into how many parts depends on the sizes alone, so
    /// that replicas equal single runs.
    pub(crate) fn multiply(
        &self,
        backend: &CudaBackend,
        finish: &Finish<'_>,
        sums: Option<&ColumnSums>,
    ) -> Result<CudaTensor> {
        /// Blocks that keep a device busy.
        const ENOUGH: usize = 96;
        /// The same where there are several seeds, whose other kernels have more blocks too.
        const ENOUGH_OF_SEEDS: usize = 64;
        let &Self { shape, squares, precision, .. } = self;
        let (small, large) = (tiles(shape, [64, 64]), tiles(shape, [128, 128]));
        let parts = if (32..ENOUGH).contains(&large) { squares.min(2) } else { 1 };
        let enough = if backend.replicas() > 1 { ENOUGH_OF_SEEDS } else { ENOUGH };
        let is_large = large * parts * backend.replicas() >= enough;
        let is_narrow = small * backend.replicas() < FEW;
        let is_layer = finish.bias.is_some() || finish.activation != Activation::Identity;
        // As `hopper.cu` has them: rows and columns of tiles, and bytes of the operands that are in
        // shared memory at a time.
        let (kernels, [rows, columns], most) = match (is_large, is_narrow) {
            (true, _) => (["layer_large", "gradient_large"], [128, 128], 98_304),
            (_, true) => (["layer_narrow", "gradient_narrow"], [64, 32], 73_728),
            _ => (["layer_small", "gradient_small"], [64, 64], 65_536),
        };
        let kernels = match (parts > 1, is_large) {
            (true, true) => ["layer_large_split", "gradient_large_split"],
            (true, false) => ["layer_small_split", "gradient_small_split"],
            _ => kernels,
        };
        let many = self.factors.len();
        let kernel = match (many, is_large, is_narrow) {
            (1, ..) => kernels[usize::from(!is_layer)],
            (_, true, _) => "sum_large",
            (_, _, true) => "sum_narrow",
            _ => "sum_small",
        };
        // Short sums need less, and leave the room to other kernels.
        let number = if precision == Precision::Bf16 { 2 } else { 4 };
        let operands = most.min(many * squares.div_ceil(parts) * SIDE * (rows + columns) * number);
        // The parts' sums take the place of the operands.
        let shared = operands.max(4 * parts * rows * (columns / parts + 4));
        // Whole squares, since what is made of the result is.
        let across = shape[1].next_multiple_of(columns.max(64)) / columns;
        let down = shape[0].div_ceil(rows);
        let launch = LaunchShape {
            blocks: [(across * parts) as u32, down as u32, backend.replicas() as u32],
            threads: 2 * rows as u32,
            shared: 1024 + shared as u32,
            cluster: parts as u32,
        };
        let sums = match sums {
            Some(ColumnSums { parts, before, sums }) => {
                [parts.read(), maybe_read(before.as_ref()), sums.write()]
            }
            None => [Argument::Nothing, Argument::Nothing, Argument::Nothing],
        };
        let operand = |side: usize| {
            let mut read = self.factors.iter().map(|factors| factors[side].read());
            match many {
                1 => read.next().unwrap_or(Argument::Nothing),
                _ => Argument::Struct(read.collect(), 16 * FACTORS),
            }
        };
        let y = backend.new_tensor(shape)?;
        let arguments = arguments![
            operand(0),
            operand(1),
            y.write(),
            shape[0] as i32,
            shape[1] as i32,
            (SIDE * squares) as i32,
            if many > 1 { many } else { self.fold } as i32,
            i32::from(finish.has_whole_quads(&y)),
            shape[1] as i32,
            finish.argument(&sums),
            Argument::Nothing,
            Argument::Nothing,
            Argument::Nothing
        ];
        backend.run_shaped(Module::Warpgroups(precision), kernel, launch, arguments)?;
        if precision == backend.precision() {
            backend.note_maker(&y);
        }
        Ok(y)
    }
}

/// A square tile of the result.
struct Tile {
    side: usize,
    /// That compute it.
    threads: u32,
    /// Parts of the operands that are in shared memory at a time.
    stages: usize,
}

/// As `gemm.cu` has them.
const TILES: [Tile; 3] = [
    Tile { side: 128, threads: 256, stages: 3 },
    Tile { side: 64, threads: 128, stages: 4 },
    Tile { side: 32, threads: 128, stages: 6 },
];

fn tiles([rows, columns]: Shape, [height, width]: Shape) -> usize {
    rows.div_ceil(height) * columns.div_ceil(width)
}

/// Whether products run on Hopper's own instructions.
pub(crate) fn has_warpgroups(backend: &CudaBackend) -> bool {
    backend.precision() != Precision::Highest && backend.device().has_warpgroups()
}
