//! Gradients of MRN and Max by pairs.

use cm_nn::Result;

use super::arguments;
use super::product::{Finish, Operands, has_warpgroups};
use super::residual::Split;
use crate::Precision;
use crate::backend::CudaBackend;
use crate::compile::Module::{ResidualDifferences, ResidualGradient};
use crate::launch::Argument;
use crate::tensor::{CudaTensor, maybe_read};

/// Where `residual_operands` has its arguments that are looked at.
pub(crate) mod operands {
    pub(crate) const GRADIENT: usize = 0;
    pub(crate) const ROWS: usize = 11;
    pub(crate) const COLUMNS: usize = 12;
    /// What InfoNCE's gradient is computed of, in the place of the gradient.
    pub(crate) const INFO_NCE: usize = 14;
    /// Bytes of `struct Gradient`.
    pub(crate) const INFO_NCE_BYTES: usize = 136;
}

/// Pairs of rows of `x` and `y`, and what is known of each.
pub(crate) struct Pairs {
    pub(crate) split: Split,
    pub(crate) x: CudaTensor,
    pub(crate) y: CudaTensor,
    /// The gradients of the distances.
    pub(crate) grad: CudaTensor,
    /// Euclidean parts, or their inverses unless gradients are `by_products`; none if there are no
    /// symmetric features.
    pub(crate) norms: Option<CudaTensor>,
    /// Which features have the maxima.
    pub(crate) args: CudaTensor,
}

/// What a side's gradient is made of, laid out for it.
struct Side<'a> {
    /// The points it belongs to, and the others.
    own: &'a CudaTensor,
    others: &'a CudaTensor,
    grads: &'a CudaTensor,
    args: &'a CudaTensor,
    is_right: bool,
}

/// Side of the tiles of pairs.
const TILE: usize = 32;

/// From so many rows on a device has enough to do with eight a block, of at most so many numbers in
/// shared memory each.
const MANY_ROWS: usize = 1024;
const MOST_NUMBERS: usize = 1024;

/// Whether Euclidean parts have gradients by products: exact but for rounding of the weights.
/// Otherwise they have them by differences, for which the inverses of norms are stored.
pub(crate) fn by_products(backend: &CudaBackend, split: Split) -> bool {
    split.components == 1 && has_warpgroups(backend)
}

impl Pairs {
    /// The gradients of `x` and of `y`, those that are wanted.
    pub(crate) fn gradients(
        &self,
        backend: &CudaBackend,
        wanted: [bool; 2],
    ) -> Result<[Option<CudaTensor>; 2]> {
        let (n, m) = (self.x.shape[0], self.y.shape[0]);
        let grads_t = backend.new_tensor([m, n])?;
        let args_t = backend.new_tensor([self.split.components * m, n])?;
        let sides = [
            Side {
                own: &self.x,
                others: &self.y,
                grads: &self.grad,
                args: &self.args,
                is_right: false,
            },
            Side { own: &self.y, others: &self.x, grads: &grads_t, args: &args_t, is_right: true },
        ];
        let sides = sides.iter().filter(|side| wanted[usize::from(side.is_right)]);
        let mut found = [None, None];
        match &self.norms {
            Some(norms) if by_products(backend, self.split) => {
                let weights = self.operands(backend, norms, &grads_t, &args_t)?;
                for side in sides {
                    let gradient = self.by_product(backend, side, &weights)?;
                    found[usize::from(side.is_right)] = Some(gradient);
                }
            }
            norms => {
                // Maxima over few features have their gradients with the Euclidean parts.
                let is_one = norms.is_some() && self.split.asymmetric <= 32;
                if wanted[1] && !is_one {
                    self.transposes(backend, &grads_t, &args_t)?;
                }
                for side in sides {
                    let gradient = self.by_differences(backend, side, norms.as_ref(), is_one)?;
                    found[usize::from(side.is_right)] = Some(gradient);
                }
            }
        }
        Ok(found)
    }

    /// The pairs as they lie for `y`.
    fn transposes(
        &self,
        backend: &CudaBackend,
        grads_t: &CudaTensor,
        args_t: &CudaTensor,
    ) -> Result<()> {
        let (n, m) = (self.x.shape[0], self.y.shape[0]);
        let arguments = arguments![
            self.grad.read(),
            self.args.read(),
            grads_t.write(),
            args_t.write(),
            n as u32,
            m as u32,
            self.split.argument()
        ];
        let blocks = (self.split.components * n.div_ceil(TILE) * m.div_ceil(TILE)) as u32;
        backend.run(ResidualDifferences, "residual_transposes", blocks, 256, 0, arguments)
    }

    /// A side's gradient by weighted differences; the maxima's in the same kernel if `is_one`.
    fn by_differences(
        &self,
        backend: &CudaBackend,
        side: &Side<'_>,
        inverses: Option<&CudaTensor>,
        is_one: bool,
    ) -> Result<CudaTensor> {
        let (n, m) = (side.own.shape[0], side.others.shape[0]);
        let gradient = backend.new_tensor(side.own.shape)?;
        if let Some(inverses) = inverses {
            // As `residual_differences.cu` has them.
            let maxima = if is_one { self.split.components * n.div_ceil(64) } else { 0 };
            let arguments = arguments![
                side.own.read(),
                side.others.read(),
                self.grad.read(),
                inverses.read(),
                maybe_read(is_one.then_some(&self.args)),
                if is_one { gradient.write() } else { gradient.update() },
                n as u32,
                m as u32,
                u32::from(side.is_right),
                maxima as u32,
                self.split.argument()
            ];
            let columns = self.split.components * self.split.symmetric.div_ceil(TILE);
            let [small, large] = [16, 64].map(|rows| columns * n.div_ceil(rows));
            let (kernel, blocks) = match large * backend.replicas() {
                96.. => ("residual_differences_large", large),
                _ => ("residual_differences_small", small),
            };
            let blocks = (maxima + blocks) as u32;
            backend.run(ResidualDifferences, kernel, blocks, 128, 0, arguments)?;
        }
        if !is_one {
            let nothing = Argument::Struct(vec![Argument::Nothing; 7], 120);
            self.add_maxima(backend, side, &gradient, nothing)?;
        }
        Ok(gradient)
    }

    /// What gradients by products are made of: operands, sums of weights and marks of special
    /// pairs, for `x` and for `y`.
    fn operands(
        &self,
        backend: &CudaBackend,
        norms: &CudaTensor,
        grads_t: &CudaTensor,
        args_t: &CudaTensor,
    ) -> Result<[[CudaTensor; 2]; 3]> {
        let (n, m) = (self.x.shape[0], self.y.shape[0]);
        let [down, across] = [n, m].map(|size| size.div_ceil(64));
        let operand = || backend.new_tensor([64 * down, 64 * across]);
        let parts = || {
            Ok::<_, crate::Error>([
                backend.new_tensor([2 * across, n])?,
                backend.new_tensor([2 * down, m])?,
            ])
        };
        let made = [[operand()?, operand()?], parts()?, parts()?];
        let mut arguments = arguments![self.grad.read(), norms.read(), self.args.read()];
        arguments.extend(made.as_flattened().iter().map(CudaTensor::write));
        arguments.extend(arguments![
            grads_t.write(),
            args_t.write(),
            n as u32,
            m as u32,
            self.split.argument(),
            Argument::Struct(Vec::new(), operands::INFO_NCE_BYTES)
        ]);
        let blocks = (4 * down * across) as u32;
        backend.run(ResidualGradient, "residual_operands", blocks, 256, 0, arguments)?;
        Ok(made)
    }

    /// A side's gradient with `sum_j w_ij (a_i - b_j)` as `a_i sum_j w_ij - sum_j w_ij b_j`, all
    /// points relative to one in their middle. The `b_j` are split into what TF32 keeps and the
    /// rest, and the sums of weights are of the weights as rounded: nothing but single precision is
    /// lost. Pairs that are too close for that are added one by one.
    fn by_product(
        &self,
        backend: &CudaBackend,
        side: &Side<'_>,
        [weights, sums, special]: &[[CudaTensor; 2]; 3],
    ) -> Result<CudaTensor> {
        let (n, m) = (side.own.shape[0], side.others.shape[0]);
        let index = usize::from(side.is_right);
        let squares = m.div_ceil(64);
        let lines = self.split.symmetric.next_multiple_of(64);
        let halves = backend.new_tensor([lines, 2 * 64 * squares])?;
        let arguments =
            arguments![side.others.read(), halves.write(), m as u32, self.split.argument()];
        let blocks = (squares * lines / 64) as u32;
        backend.run(ResidualGradient, "residual_halves", blocks, 256, 0, arguments)?;
        let product = Operands {
            factors: vec![[weights[index].clone(), halves]],
            shape: [n, self.split.symmetric],
            squares: 2 * squares,
            fold: squares,
            precision: Precision::Tf32,
        };
        let product = product.multiply(backend, &Finish::NONE, None)?;
        let euclidean = Argument::Struct(
            arguments![
                side.own.read(),
                product.read(),
                sums[index].read(),
                special[index].read(),
                side.others.read(),
                self.grad.read(),
                maybe_read(self.norms.as_ref()),
                2 * squares as u32,
                u32::from(side.is_right)
            ],
            120,
        );
        let gradient = backend.new_tensor(side.own.shape)?;
        self.add_maxima(backend, side, &gradient, euclidean)?;
        Ok(gradient)
    }

    /// Writes the asymmetric part of a side's gradient, and the symmetric one by products.
    fn add_maxima(
        &self,
        backend: &CudaBackend,
        side: &Side<'_>,
        gradient: &CudaTensor,
        euclidean: Argument,
    ) -> Result<()> {
        // The transposed gradients have their share already.
        let scale = if side.is_right { -1.0 } else { self.split.share() };
        let arguments = arguments![
            side.grads.read(),
            side.args.read(),
            gradient.update(),
            side.own.shape[0] as u32,
            side.others.shape[0] as u32,
            self.split.argument(),
            scale,
            euclidean
        ];
        let rows = self.split.components * side.own.shape[0];
        let is_many = rows * backend.replicas() >= MANY_ROWS;
        // As `residual_gradient.cu` has them: sums of each feature in two halves, or of a few by
        // lane.
        let numbers = match self.split.asymmetric {
            0..=32 => 32 * 32,
            many => 2 * many.min(2048),
        };
        // Two warps a block where others would be idle, or where more have no room.
        let warps = if is_many && numbers <= MOST_NUMBERS { 8 } else { 2 };
        let blocks = rows.div_ceil(warps) as u32;
        let shared = (4 * warps * numbers) as u32;
        let kernel = match side.others.shape[0] {
            0..=256 => "residual_max_gradient",
            _ => "residual_max_gradient_long",
        };
        backend.run(ResidualGradient, kernel, blocks, 32 * warps as u32, shared, arguments)
    }
}
