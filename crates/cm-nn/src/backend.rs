//! The contract between losses and what runs them.

use cm_quasimetric::Head;

use crate::{Activation, AdamSettings, Captured, Result, Shape, Values};

/// Matrices of `f32`, operations on them, and their gradients.
///
/// Losses and modules are written once, against [`Var`](crate::Var), whose methods check shapes and
/// call the operations here. A second implementation only has to supply this trait;
/// `cm_nn::testing` (feature `testing`) holds the tests it must pass.
///
/// # What every implementation promises
/// * Values are row-major `f32` matrices with at least one row and one column.
/// * No operation branches on a value on the host, and none but [`read`](Self::read) and
///   [`step`](Self::step) waits for the device. A training step is therefore the same sequence of
///   operations every time: [`capture`](Self::capture) may run it eagerly, or record it once and
///   replay it. What changes between steps (the batch, parameters, optimiser moments, their step
///   count, the random counter) lives in [cells](Self::Cell) or in the backend, never in the
///   recorded sequence.
/// * Randomness is counter-based: a draw depends on the backend's seed, its [`step`](Self::step)
///   and the draw's `stream` only, as laid out by cm-random. The same seed gives the same numbers
///   on every backend.
/// * The result of an operation does not depend on the number of threads.
///
/// # Replicas
/// A backend may run several seeds at once: one *replica* for each of its [`seeds`](Self::seeds).
/// Replicas are an axis that nothing above the backend sees. Shapes stay `[rows, columns]`, an
/// operation does the same to every replica, and replicas differ in what cells hold and in what is
/// drawn. A replica computes what a backend with its seed alone would, bit for bit. Only reads and
/// writes tell replicas apart.
///
/// # What every caller promises
/// The shapes written at each operation. [`Var`](crate::Var)'s methods check them and return
/// [`Error::Shape`](crate::Error::Shape); an implementation may rely on them. Implementations return errors for failures of their own
/// (a device, memory, a quasimetric head that refuses its number of features).
///
/// # Notation
/// `dx` is the gradient of the loss with respect to `x`; `dy` that with respect to the operation's
/// result `y`. Gradients reach exactly the inputs that are *tracked*: the wanted cells of
/// [`gradients`](Self::gradients) and what was computed from them.
pub trait Backend: Clone + 'static {
    /// A matrix in the backend's memory. Cloning shares it.
    type Tensor: Clone;
    /// A matrix that outlives the step and is overwritten in place: a parameter, a moment, a
    /// counter. Cloning shares it.
    type Cell: Clone;

    /// The seed of each replica; at least one.
    fn seeds(&self) -> &[u64];

    /// Rows and columns.
    fn shape(x: &Self::Tensor) -> Shape;

    /// A constant from the host, the same in every replica: `rows * columns` values, row by row.
    /// [`Error::InsideCapture`](crate::Error::InsideCapture) in a captured step: what is uploaded
    /// there would be the same at every run, so it belongs before the step or into a cell.
    fn tensor(&self, shape: Shape, values: Vec<f32>) -> Result<Self::Tensor>;

    /// A constant with one value everywhere. Nothing is uploaded, so a captured step may use it.
    fn full(&self, shape: Shape, value: f32) -> Result<Self::Tensor>;

    /// The values on the host, in the order of `tensors`: one slice per replica, row by row. Waits
    /// for the device, once for all. `InsideCapture` in a captured step.
    fn read(&self, tensors: &[&Self::Tensor]) -> Result<Vec<Values>>;

    /// A new cell; `values` has one entry per replica. `InsideCapture` in a captured step.
    fn cell(&self, shape: Shape, values: Vec<Vec<f32>>) -> Result<Self::Cell>;

    /// Overwrites what `replica` holds in each cell, with as many values as the cell has.
    /// `InsideCapture` in a captured step.
    fn write(&self, replica: usize, cells: &[(&Self::Cell, &[f32])]) -> Result<()>;

    /// A step that can be run again and again; see [`Captured`]. The closure may run at every
    /// [`Captured::run`], or only at the first one and be replayed from a recording afterwards.
    ///
    /// In the step, cells are the inputs and what the closure returns the outputs: tensors that
    /// each run overwrites. Nothing is uploaded or read there. A step inside a step is
    /// `InsideCapture`.
    fn capture<'a, T: 'a>(&self, step: impl FnMut() -> Result<T> + 'a) -> Captured<'a, T>;

    /// The cell's value at this point of the step: tracked if this happens inside
    /// [`gradients`](Self::gradients) that want the cell, a constant otherwise. Once the cell is
    /// overwritten, what was loaded before must not be used any more: the tensor may or may not
    /// follow.
    fn load(&self, cell: &Self::Cell) -> Result<Self::Tensor>;

    /// Runs `loss` and returns the gradients of its result `[1, 1]` with respect to the `wanted`
    /// cells, in their order.
    ///
    /// A cell the loss does not depend on has gradient zero. Tensors computed from other
    /// `gradients` are constants. Calling this inside `loss` is
    /// [`Error::NestedGradients`](crate::Error::NestedGradients). If `loss` fails, its error is
    /// returned and the backend is as before.
    fn gradients(
        &self,
        wanted: &[Self::Cell],
        loss: impl FnOnce() -> Result<Self::Tensor>,
    ) -> Result<Vec<Self::Tensor>>;

    /// The same values as a constant.
    fn stop_gradient(&self, x: &Self::Tensor) -> Self::Tensor;

    /// `y = f(x w + b)`: `x [n, i]`, `w [i, o]`, `b [1, o]`, `y [n, o]`, with `z = x w + b` and
    /// `dz = dy f'(z)`: `dx = dz w^T`, `dw = x^T dz`, `db` = the column sums of `dz`. A product is
    /// computed only where its input is tracked, so weights that are constants cost no gradient.
    fn linear(
        &self,
        x: &Self::Tensor,
        w: &Self::Tensor,
        b: Option<&Self::Tensor>,
        activation: Activation,
    ) -> Result<Self::Tensor>;

    /// `y = gain (x - m) / sqrt(v + epsilon) + bias` with each row's mean `m` and (biased) variance
    /// `v`: `x [n, c]`, `gain [1, c]`, `bias [1, c]`. Gradients to all three.
    fn layer_norm(
        &self,
        x: &Self::Tensor,
        gain: &Self::Tensor,
        bias: &Self::Tensor,
        epsilon: f32,
    ) -> Result<Self::Tensor>;

    /// `y = scale x + shift`, element by element; `dx = scale dy`.
    fn affine(&self, x: &Self::Tensor, scale: f32, shift: f32) -> Result<Self::Tensor>;

    /// `y = f(x)`, element by element; `dx = f'(x) dy` with `f'` as stated at each [`Map`].
    fn map(&self, x: &Self::Tensor, f: Map) -> Result<Self::Tensor>;

    /// `z = f(x, y)`, element by element. In each of the two directions the sizes are equal or one
    /// of them is 1, which is then repeated; the gradient of a repeated input is summed over the
    /// repetitions.
    fn zip(&self, x: &Self::Tensor, y: &Self::Tensor, f: Zip) -> Result<Self::Tensor>;

    /// Reduces over rows (`[1, c]`), over columns (`[n, 1]`) or both (`[1, 1]`); see [`Reduce`] for
    /// values and gradients.
    fn reduce(&self, x: &Self::Tensor, over: Over, f: Reduce) -> Result<Self::Tensor>;

    /// Each row divided by its length plus `epsilon`: `y = x / (|x| + epsilon)`. The length of a row
    /// of zeros has no gradient.
    fn l2_normalize(&self, x: &Self::Tensor, epsilon: f32) -> Result<Self::Tensor> {
        let squares = self.reduce(&self.map(x, Map::Square)?, Over::Columns, Reduce::Sum)?;
        let length = self.map(&squares, Map::Sqrt)?;
        self.zip(x, &self.affine(&length, 1.0, epsilon)?, Zip::Div)
    }

    /// The matrices one after another along `axis`; at least one, equal in the other direction. The
    /// gradient is cut up again.
    fn concat(&self, parts: &[&Self::Tensor], axis: Axis) -> Result<Self::Tensor>;

    /// Rows (columns) `start..start + count` of `x`; `count >= 1`. The gradient is zero elsewhere.
    fn slice(
        &self,
        x: &Self::Tensor,
        axis: Axis,
        start: usize,
        count: usize,
    ) -> Result<Self::Tensor>;

    /// Row `i` of the result is row `(i - shift) mod n` of `x`: rows move down by `shift < n`, the
    /// last ones come back at the top.
    fn roll(&self, x: &Self::Tensor, shift: usize) -> Result<Self::Tensor>;

    /// Row `i` of the result is row `index[i]` of `x`: `x [n, c]`, `index [m, 1]`, result `[m, c]`.
    /// An index is a whole number stored as `f32` (exact up to 2^24); it is truncated and clamped
    /// to `0..n`, and NaN counts as 0. `dx` gets the rows of `dy` added in the order of `i`; no
    /// gradient to `index`.
    fn gather(&self, x: &Self::Tensor, index: &Self::Tensor) -> Result<Self::Tensor>;

    /// `y[j, i] = x[i, j]`.
    fn transpose(&self, x: &Self::Tensor) -> Result<Self::Tensor>;

    /// The diagonal of a square matrix as a column: `x [n, n]`, result `[n, 1]`.
    fn diagonal(&self, x: &Self::Tensor) -> Result<Self::Tensor>;

    /// Quasimetric distances from the rows of `x [n, c]` to the rows of `y [m, c]`: `[n, 1]` if
    /// [`Pairing::Rows`] (`n = m`), `[n, m]` if
    /// [`Pairing::All`]. Gradients to `x`, `y` and the logit, as cm-quasimetric defines them.
    ///
    /// `logit [1, 1]` replaces the constant in
    /// [`Reduction::MaxMean`](cm_quasimetric::Reduction::MaxMean); it is given only if the head has
    /// that reduction.
    fn quasimetric(
        &self,
        head: Head,
        pairing: Pairing,
        x: &Self::Tensor,
        y: &Self::Tensor,
        logit: Option<&Self::Tensor>,
    ) -> Result<Self::Tensor>;

    /// Mean cross entropy of a square matrix of logits `l [n, n]` against its diagonal, `[1, 1]`:
    /// by rows `mean_i (logsumexp_j l_ij - l_ii)`, by columns `mean_j (logsumexp_i l_ij - l_jj)`,
    /// or the mean of both. `dl` is the softmax minus the identity, over `n`, times `dy`.
    fn info_nce(&self, logits: &Self::Tensor, direction: Direction) -> Result<Self::Tensor>;

    /// Log-density of `action` under `tanh(normal(mean, scale))`, summed over columns: all
    /// `[n, a]`, `scale > 0`, result `[n, 1]`.
    ///
    /// With `u = artanh(a)`, `z = (u - mean) / scale`, each term is
    /// `-z^2/2 - ln scale - ln(2 pi)/2 - ln(1 - a^2)` while `|a| <` [`ACTION_BOUND`]. An action at
    /// or beyond the bound gets the mass of that whole tail spread over its width:
    /// `ln P(u > artanh bound) - ln(1 - bound)` and likewise on the left. Gradients to `mean` and
    /// `scale` everywhere, to `action` between the bounds (zero beyond).
    fn tanh_normal_log_density(
        &self,
        mean: &Self::Tensor,
        scale: &Self::Tensor,
        action: &Self::Tensor,
    ) -> Result<Self::Tensor>;

    /// Independent draws; a constant. Element `e` (counted row by row) comes from block `e / 4` of
    /// the stream at the current step: word `w[e % 4]` through `unit_f32`, or
    /// `normal_pair(w[0], w[1])` and `normal_pair(w[2], w[3])` in order.
    fn draw(&self, shape: Shape, distribution: Distribution, stream: u32) -> Result<Self::Tensor>;

    /// For each row of `logits [n, m]` one column index drawn with probability softmax(row),
    /// `[n, 1]`; a constant.
    ///
    /// Row `i` takes uniform number `u` as [`draw`](Self::draw) gives element `i`, and the first
    /// column whose running sum of `exp(l - max)` exceeds `u` times the row's total (the last
    /// column if rounding leaves none).
    fn categorical(&self, logits: &Self::Tensor, stream: u32) -> Result<Self::Tensor>;

    /// A uniformly random order of `0..n` as indices `[n, 1]`; a constant. Index `i` is the rank of
    /// word `i` of the stream among the first `n` words, the smaller position first among equals.
    fn permutation(&self, n: usize, stream: u32) -> Result<Self::Tensor>;

    /// One step of Adam on every cell of `state`, `gradients` in the same order:
    ///
    /// `g` is the gradient, scaled by `min(1, clip / |all gradients|)` if there is a clip; `t`
    /// becomes `t + 1`; `m` becomes `beta1 m + (1 - beta1) g`; `v` becomes
    /// `beta2 v + (1 - beta2) g^2`; the parameter `p` becomes
    /// `p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)`. A backend may take
    /// gradients closer to 0 than 1e-15, and moments closer than 1e-30, as 0.
    fn adam(
        &self,
        settings: &AdamSettings,
        state: AdamCells<'_, Self>,
        gradients: &[Self::Tensor],
    ) -> Result<()>;

    /// `p` becomes `p - lr g` for every cell.
    fn sgd(
        &self,
        learning_rate: f32,
        cells: &[Self::Cell],
        gradients: &[Self::Tensor],
    ) -> Result<()>;

    /// `target` becomes `decay * target + (1 - decay) * source` for every pair; `decay = 0` copies.
    fn blend(&self, decay: f32, targets: &[Self::Cell], sources: &[Self::Cell]) -> Result<()>;

    /// The step that draws are counted by, one for all replicas. Waits for the device.
    /// `InsideCapture` in a captured step.
    fn step(&self) -> Result<u64>;

    /// Sets the step, to resume a run. `InsideCapture` in a captured step.
    fn set_step(&self, step: u64) -> Result<()>;

    /// Adds one to the step: what a training step does last.
    fn advance(&self) -> Result<()>;
}

/// What [`Backend::adam`] updates: as many moments as parameters, in the same order and shapes.
pub struct AdamCells<'a, B: Backend> {
    /// The parameters.
    pub parameters: &'a [B::Cell],
    /// First moments `m`.
    pub first: &'a [B::Cell],
    /// Second moments `v`.
    pub second: &'a [B::Cell],
    /// The number of steps taken `t`, `[1, 1]`.
    pub step: &'a B::Cell,
}

/// Where the tanh-normal log-density switches to the mass of the tail.
pub const ACTION_BOUND: f32 = 0.999;

/// Functions of one number, with the derivative used where there is a kink.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Map {
    /// One of the activations.
    Activation(Activation),
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `ln(1 + exp(x))`, without overflow.
    Softplus,
    /// `exp(x)`.
    Exp,
    /// `ln(x)`: minus infinity at 0, NaN below; derivative `1 / x`.
    Log,
    /// `x^2`.
    Square,
    /// `sqrt(x)`; derivative 0 at 0, so that the gradient of a norm is finite.
    Sqrt,
    /// `|x|`; derivative 0 at 0.
    Abs,
    /// 1 where `x > 0`, else 0; derivative 0.
    Step,
    /// `x` moved into `[low, high]`; derivative 1 inside and on the bounds, else 0.
    Clamp {
        /// Lower bound.
        low: f32,
        /// Upper bound.
        high: f32,
    },
}

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zip {
    /// `x + y`.
    Add,
    /// `x - y`.
    Sub,
    /// `x y`.
    Mul,
    /// `x / y`.
    Div,
    /// The larger; equal numbers share the gradient by halves.
    Max,
    /// The smaller; equal numbers share the gradient by halves.
    Min,
}

/// Ways to reduce many numbers to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest; equal largest numbers share the gradient evenly.
    Max,
    /// `ln sum exp`, without overflow; the gradient is the softmax. All minus infinity gives minus
    /// infinity and gradient 0.
    LogSumExp,
}

/// Which index a reduction runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Over the rows: one result per column, `[1, c]`.
    Rows,
    /// Over the columns: one result per row, `[n, 1]`.
    Columns,
    /// Over everything: `[1, 1]`.
    All,
}

/// A direction of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Down: the index of rows.
    Rows,
    /// Across: the index of columns.
    Columns,
}

/// Which rows of `x` and `y` a distance is taken between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Row `i` of `x` to row `i` of `y`.
    Rows,
    /// Every row of `x` to every row of `y`.
    All,
}

/// Which way a contrastive cross entropy classifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Each row picks its column.
    Rows,
    /// Each column picks its row.
    Columns,
    /// The mean of both.
    Symmetric,
}

/// What [`Backend::draw`] draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform on `[0, 1)`.
    Uniform,
    /// Standard normal.
    Normal,
}
