//! The backend that runs anywhere: eager, on the CPU, with dfdx's tape for gradients.

mod density;
mod distance;
mod elementwise;
mod fixed;
mod info_nce;
mod layer_norm;
mod layout;
mod linear;
mod math;
mod memory;
mod optimise;
mod parallel;
mod product;
mod random;
mod reduce;
mod tape;
mod zip;

use std::cell::{Cell as HostCell, RefCell};
use std::rc::Rc;

use cm_quasimetric::Head;
use cm_random::Philox;
use dfdx::prelude::Cpu;

pub use self::fixed::FixedLayer;
use self::memory::{Buffer, Pool};
use self::tape::{Place, Scope};
use crate::backend::AdamCells;
use crate::{
    Activation, AdamSettings, Axis, Backend, Captured, Direction, Distribution, Error, Map, Over,
    Pairing, Reduce, Result, Shape, Values, Zip,
};

/// The CPU backend. Cloning shares it; it stays on one thread and uses the threads of rayon's
/// current pool for large matrices.
///
/// ```
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(42); // the seed of every draw
/// let noise = Var::normal(&backend, [2, 3], 0x100)?;
/// assert_eq!(noise.shape(), [2, 3]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone)]
pub struct DfdxBackend {
    inner: Rc<Inner>,
}

struct Inner {
    device: Cpu,
    seed: u64,
    philox: Philox,
    step: HostCell<u64>,
    /// Whether a captured step is running.
    captured: HostCell<bool>,
    pool: Rc<Pool>,
    /// The tape that operations are recorded on, inside `gradients`.
    scope: RefCell<Option<Scope>>,
}

/// A matrix of [`DfdxBackend`].
#[derive(Clone)]
pub struct Matrix {
    shape: Shape,
    values: Rc<Buffer>,
    place: Option<Place>,
}

/// A cell of [`DfdxBackend`].
#[derive(Clone)]
pub struct Cell {
    inner: Rc<CellInner>,
}

struct CellInner {
    shape: Shape,
    /// Shared with the matrices that were loaded; overwriting copies only while there are any.
    values: RefCell<Rc<Buffer>>,
}

impl Cell {
    fn shape(&self) -> Shape {
        self.inner.shape
    }

    /// Tells cells apart.
    fn address(&self) -> usize {
        Rc::as_ptr(&self.inner).addr()
    }

    /// Overwrites the values in place.
    fn update(&self, f: impl FnOnce(&mut [f32])) {
        f(Rc::make_mut(&mut *self.inner.values.borrow_mut()).values_mut());
    }
}

impl DfdxBackend {
    /// A backend whose weights and draws are keyed by `seed`, at step 0.
    pub fn new(seed: u64) -> Self {
        let inner = Inner {
            device: Cpu::default(),
            seed,
            philox: Philox::new(seed),
            step: HostCell::new(0),
            captured: HostCell::new(false),
            pool: Rc::default(),
            scope: RefCell::new(None),
        };
        Self { inner: Rc::new(inner) }
    }

    /// The backend of the only seed: this backend has no replicas.
    pub fn with_seeds(seeds: &[u64]) -> Result<Self> {
        match *seeds {
            [seed] => Ok(Self::new(seed)),
            _ => Err(Error::Replicas {
                what: "the CPU backend",
                expected: "one seed at a time".to_owned(),
                found: seeds.len(),
            }),
        }
    }

    fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// Refuses an operation that a recording could not repeat.
    fn outside_capture(&self, operation: &'static str, instead: &'static str) -> Result<()> {
        match self.inner.captured.get() {
            true => Err(Error::InsideCapture { operation, instead }),
            false => Ok(()),
        }
    }
}

/// Ends the captured step however its closure ends.
struct Capturing<'a>(&'a DfdxBackend);

impl Drop for Capturing<'_> {
    fn drop(&mut self) {
        self.0.inner.captured.set(false);
    }
}

impl Backend for DfdxBackend {
    type Tensor = Matrix;
    type Cell = Cell;

    fn seeds(&self) -> &[u64] {
        std::slice::from_ref(&self.inner.seed)
    }

    fn shape(x: &Matrix) -> Shape {
        x.shape
    }

    fn tensor(&self, shape: Shape, values: Vec<f32>) -> Result<Matrix> {
        self.outside_capture(
            "making a tensor from host values",
            "make it before the step, or write a cell",
        )?;
        Ok(self.constant(shape, values))
    }

    fn full(&self, shape: Shape, value: f32) -> Result<Matrix> {
        let mut values = self.pool().take(shape[0] * shape[1]);
        values.fill(value);
        Ok(self.constant(shape, values))
    }

    fn read(&self, tensors: &[&Matrix]) -> Result<Vec<Values>> {
        self.outside_capture("reading values", "return the tensor from the step")?;
        Ok(tensors.iter().map(|tensor| Values::new(tensor.values.to_vec(), 1)).collect())
    }

    fn cell(&self, shape: Shape, mut values: Vec<Vec<f32>>) -> Result<Cell> {
        self.outside_capture("making a cell", "make it before the step")?;
        let (Some(values), true) = (values.pop(), values.is_empty()) else {
            let (what, expected) = ("values of a cell", "one replica's".to_owned());
            return Err(Error::Replicas { what, expected, found: values.len() });
        };
        let values = RefCell::new(Rc::new(Buffer::new(values, &self.inner.pool)));
        Ok(Cell { inner: Rc::new(CellInner { shape, values }) })
    }

    fn write(&self, replica: usize, cells: &[(&Cell, &[f32])]) -> Result<()> {
        self.outside_capture("writing a cell", "write it between two runs")?;
        if replica != 0 {
            let (what, expected) = ("the replica to write", "replica 0".to_owned());
            return Err(Error::Replicas { what, expected, found: replica });
        }
        cells.iter().for_each(|(cell, values)| cell.update(|cell| cell.copy_from_slice(values)));
        Ok(())
    }

    fn capture<'a, T: 'a>(&self, mut step: impl FnMut() -> Result<T> + 'a) -> Captured<'a, T> {
        let backend = self.clone();
        Captured::new(move |_| {
            backend.outside_capture("another captured step", "capture both as one")?;
            backend.inner.captured.set(true);
            let _running = Capturing(&backend);
            step()
        })
    }

    fn load(&self, cell: &Cell) -> Result<Matrix> {
        let values = cell.inner.values.borrow().clone();
        Ok(Matrix { shape: cell.shape(), values, place: self.wanted_place(cell.address()) })
    }

    fn gradients(
        &self,
        wanted: &[Cell],
        loss: impl FnOnce() -> Result<Matrix>,
    ) -> Result<Vec<Matrix>> {
        self.differentiate(wanted, loss)
    }

    fn stop_gradient(&self, x: &Matrix) -> Matrix {
        Matrix { place: None, ..x.clone() }
    }

    fn linear(
        &self,
        x: &Matrix,
        w: &Matrix,
        b: Option<&Matrix>,
        activation: Activation,
    ) -> Result<Matrix> {
        linear::linear(self, x, w, b, activation)
    }

    fn layer_norm(&self, x: &Matrix, gain: &Matrix, bias: &Matrix, epsilon: f32) -> Result<Matrix> {
        layer_norm::layer_norm(self, x, gain, bias, epsilon)
    }

    fn affine(&self, x: &Matrix, scale: f32, shift: f32) -> Result<Matrix> {
        elementwise::affine(self, x, scale, shift)
    }

    fn map(&self, x: &Matrix, f: Map) -> Result<Matrix> {
        elementwise::map(self, x, f)
    }

    fn zip(&self, x: &Matrix, y: &Matrix, f: Zip) -> Result<Matrix> {
        zip::zip(self, x, y, f)
    }

    fn reduce(&self, x: &Matrix, over: Over, f: Reduce) -> Result<Matrix> {
        reduce::reduce(self, x, over, f)
    }

    fn concat(&self, parts: &[&Matrix], axis: Axis) -> Result<Matrix> {
        layout::concat(self, parts, axis)
    }

    fn slice(&self, x: &Matrix, axis: Axis, start: usize, count: usize) -> Result<Matrix> {
        layout::slice(self, x, axis, start, count)
    }

    fn roll(&self, x: &Matrix, shift: usize) -> Result<Matrix> {
        layout::roll(self, x, shift)
    }

    fn gather(&self, x: &Matrix, index: &Matrix) -> Result<Matrix> {
        layout::gather(self, x, index)
    }

    fn transpose(&self, x: &Matrix) -> Result<Matrix> {
        layout::transpose(self, x)
    }

    fn diagonal(&self, x: &Matrix) -> Result<Matrix> {
        layout::diagonal(self, x)
    }

    fn quasimetric(
        &self,
        head: Head,
        pairing: Pairing,
        x: &Matrix,
        y: &Matrix,
        logit: Option<&Matrix>,
    ) -> Result<Matrix> {
        distance::quasimetric(self, head, pairing, x, y, logit)
    }

    fn info_nce(&self, logits: &Matrix, direction: Direction) -> Result<Matrix> {
        info_nce::info_nce(self, logits, direction)
    }

    fn tanh_normal_log_density(
        &self,
        mean: &Matrix,
        scale: &Matrix,
        action: &Matrix,
    ) -> Result<Matrix> {
        density::tanh_normal_log_density(self, mean, scale, action)
    }

    fn draw(&self, shape: Shape, distribution: Distribution, stream: u32) -> Result<Matrix> {
        Ok(random::draw(self, shape, distribution, stream))
    }

    fn categorical(&self, logits: &Matrix, stream: u32) -> Result<Matrix> {
        Ok(random::categorical(self, logits, stream))
    }

    fn permutation(&self, n: usize, stream: u32) -> Result<Matrix> {
        Ok(random::permutation(self, n, stream))
    }

    fn adam(
        &self,
        settings: &AdamSettings,
        state: AdamCells<'_, Self>,
        gradients: &[Matrix],
    ) -> Result<()> {
        optimise::adam(settings, &state, gradients);
        Ok(())
    }

    fn sgd(&self, learning_rate: f32, cells: &[Cell], gradients: &[Matrix]) -> Result<()> {
        optimise::sgd(learning_rate, cells, gradients);
        Ok(())
    }

    fn blend(&self, decay: f32, targets: &[Cell], sources: &[Cell]) -> Result<()> {
        optimise::blend(decay, targets, sources);
        Ok(())
    }

    fn step(&self) -> Result<u64> {
        self.outside_capture("reading the step", "count it on the host")?;
        Ok(self.inner.step.get())
    }

    fn set_step(&self, step: u64) -> Result<()> {
        self.outside_capture("setting the step", "set it between two runs")?;
        self.inner.step.set(step);
        Ok(())
    }

    fn advance(&self) -> Result<()> {
        self.inner.step.set(self.inner.step.get().wrapping_add(1));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::DfdxBackend;
    use crate::testing::Replicated;

    crate::backend_tests!(DfdxBackend::new);

    #[test]
    fn replicas() -> crate::Result<()> {
        let several = |seeds: &[u64]| Replicated::new(seeds, DfdxBackend::new);
        crate::testing::replicas(DfdxBackend::new, several)
    }

    #[test]
    fn takes_one_seed_and_says_so() {
        assert!(DfdxBackend::with_seeds(&[4]).is_ok());
        for seeds in [&[][..], &[1, 2]] {
            let refused = DfdxBackend::with_seeds(seeds).map(drop).unwrap_err().to_string();
            let found = seeds.len();
            let wanted = format!("the CPU backend: expected one seed at a time, found {found}");
            assert_eq!(refused, wanted);
        }
    }
}
