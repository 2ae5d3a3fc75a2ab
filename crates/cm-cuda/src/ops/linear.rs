//! `f(x w + b)` in one kernel, and the products of its gradients.

use cm_nn::{Activation, Result, Shape};

use super::arguments;
use super::elementwise::activation_code;
use super::reduce::column_sums;
use crate::backend::CudaBackend;
use crate::compile::Module;
use crate::launch::Argument;
use crate::tape::Slots;
use crate::tensor::{CudaTensor, maybe_read, maybe_write};

pub(crate) fn linear(
    backend: &CudaBackend,
    x: &CudaTensor,
    w: &CudaTensor,
    b: Option<&CudaTensor>,
    activation: Activation,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(w), b.and_then(|b| backend.place(b))];
    let is_tracked = places.iter().any(Option::is_some);
    let shape = [x.shape[0], w.shape[1]];
    let slope = match activation {
        Activation::Identity => None,
        _ if is_tracked => Some(backend.new_tensor(shape)?),
        _ => None,
    };
    let product = Product { left: x.clone(), right: w.clone(), kind: Kind::Plain };
    let y = product.run(backend, &Finish { bias: b, activation, slope: slope.as_ref(), ..NONE })?;
    Ok(backend.record_place(y, &places, |place| {
        let (x, w) = (x.clone(), w.clone());
        move |backend: &CudaBackend, slots: &mut Slots| {
            let Some(dz) = slots.take(backend, place, shape, slope.as_ref())? else {
                return Ok(());
            };
            let [x_place, w_place, b_place] = places;
            if let Some(place) = b_place {
                slots.add(place, column_sums(backend, &dz, None)?);
            }
            if let Some(place) = w_place {
                let product = Product { left: x, right: dz.clone(), kind: Kind::Left };
                slots.add_product(place, product);
            }
            if let Some(place) = x_place {
                slots.add_product(place, Product { left: dz, right: w, kind: Kind::Right });
            }
            Ok(())
        }
    }))
}

/// Which factor of a product is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
}

/// What happens to a product before it is stored: `(f(z + bias) + addend) factor`.
struct Finish<'a> {
    bias: Option<&'a CudaTensor>,
    activation: Activation,
    /// Receives `f'(z + bias)`.
    slope: Option<&'a CudaTensor>,
    factor: Option<&'a CudaTensor>,
    addend: Option<&'a CudaTensor>,
}

const NONE: Finish<'_> = Finish {
    bias: None,
    activation: Activation::Identity,
    slope: None,
    factor: None,
    addend: None,
};

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

impl Product {
    /// `(product + addend) factor`.
    pub(crate) fn compute(
        &self,
        backend: &CudaBackend,
        addend: Option<&CudaTensor>,
        factor: Option<&CudaTensor>,
    ) -> Result<CudaTensor> {
        self.run(backend, &Finish { addend, factor, ..NONE })
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

    fn run(&self, backend: &CudaBackend, finish: &Finish<'_>) -> Result<CudaTensor> {
        let (shape, depth) = self.sizes();
        let y = backend.new_tensor(shape)?;
        let (index, blocks) = self.tile(backend, shape);
        let tile = &TILES[index];
        let names = match self.kind {
            Kind::Plain => ["plain_128", "plain_64", "plain_32"],
            Kind::Left => ["left_128", "left_64", "left_32"],
            Kind::Right => ["right_128", "right_64", "right_32"],
        };
        let (left_pitch, right_pitch) = (self.left.shape[1], self.right.shape[1]);
        let wide =
            i32::from(self.left.has_whole_quads()) + 2 * i32::from(self.right.has_whole_quads());
        let epilogue = Argument::Struct(
            vec![
                maybe_read(finish.bias),
                maybe_write(finish.slope),
                maybe_read(finish.factor),
                maybe_read(finish.addend),
                Argument::Signed(activation_code(finish.activation)),
            ],
            72,
        );
        let arguments = arguments![
            self.left.read(),
            self.right.read(),
            y.write(),
            shape[0] as i32,
            shape[1] as i32,
            depth as i32,
            left_pitch as i32,
            right_pitch as i32,
            wide,
            epilogue
        ];
        let module = Module::Product(backend.precision());
        let shared = self.shared_bytes(tile);
        backend.run(module, names[index], blocks, tile.threads, shared, arguments)?;
        Ok(y)
    }

    /// All stages of both operands' tiles, as `gemm.cu` lays them out.
    fn shared_bytes(&self, &Tile { side, stages, .. }: &Tile) -> u32 {
        let (deep, wide) = (side * 36, 32 * (side + 8));
        let floats = match self.kind {
            Kind::Plain => deep + wide,
            Kind::Left => wide + wide,
            Kind::Right => deep + deep,
        };
        (stages * floats * 4) as u32
    }

    /// The largest tile that has room and still gives every multiprocessor work, and the number of
    /// blocks. The choice does not change the result.
    fn tile(&self, backend: &CudaBackend, [rows, columns]: Shape) -> (usize, u32) {
        let tiles = |side: usize| rows.div_ceil(side) * columns.div_ceil(side);
        let properties = backend.device().properties();
        let enough = properties.multiprocessors as usize;
        let fits = |tile: &Tile| {
            tiles(tile.side) * backend.replicas() >= enough
                && self.shared_bytes(tile) <= properties.shared
        };
        let index = TILES.iter().position(fits).unwrap_or(2);
        (index, tiles(TILES[index].side) as u32)
    }
}
