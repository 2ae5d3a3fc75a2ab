//! Gradients of MRN and Max by pairs.

use cm_nn::Result;

use super::arguments;
use super::product::{Finish, Operands, has_warpgroups};
use super::residual::Split;
use crate::Precision;
use crate::backend::CudaBackend;
use crate::compile::Module::{ResidualDifferences, ResidualGradient};
use crate::launch::Argument;
use crate::tensor::{CudaTensor, maybe_read, maybe_write};

/// Pairs of rows of `x` and `y`, and what is known of each.
pub(crate) struct Pairs {
    pub(crate) split: Split,
    pub(crate) x: CudaTensor,
    pub(crate) y: CudaTensor,
    /// The gradients of the distances.
    pub(crate) grad: CudaTensor,
    /// Euclidean parts; none if there are no symmetric features.
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

impl Pairs {
    /// The gradients of `x` and of `y`, those that are wanted.
    pub(crate) fn gradients(
        &self,
        backend: &CudaBackend,
        wanted: [bool; 2],
    ) -> Result<[Option<CudaTensor>; 2]> {
        let [grads_t, args_t] = [self.each(backend, true)?, self.each(backend, true)?];
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
        let mut found = [None, None];
        match &self.norms {
            // By products: exact but for rounding of the weights.
            Some(norms) if self.split.components == 1 && has_warpgroups(backend) => {
                let weights = self.operands(backend, norms, &grads_t, &args_t)?;
                for (side, found) in sides.iter().zip(&mut found) {
                    if wanted[usize::from(side.is_right)] {
                        *found = Some(self.by_product(backend, side, &weights)?);
                    }
                }
            }
            norms => {
                let weights = self.weights(backend, norms.as_ref(), &grads_t, &args_t)?;
                for (side, found) in sides.iter().zip(&mut found) {
                    if wanted[usize::from(side.is_right)] {
                        *found = Some(self.by_differences(backend, side, weights.as_ref())?);
                    }
                }
            }
        }
        Ok(found)
    }

    /// A number for each pair and component.
    fn each(&self, backend: &CudaBackend, transposed: bool) -> Result<CudaTensor> {
        let (n, m) = (self.x.shape[0], self.y.shape[0]);
        let (rows, columns) = if transposed { (m, n) } else { (n, m) };
        Ok(backend.new_tensor([self.split.components * rows, columns])?)
    }

    /// Weights and scales, as they lie for `x` and as they lie for `y`.
    fn weights(
        &self,
        backend: &CudaBackend,
        norms: Option<&CudaTensor>,
        grads_t: &CudaTensor,
        args_t: &CudaTensor,
    ) -> Result<Option<[[CudaTensor; 2]; 2]>> {
        let (n, m) = (self.x.shape[0], self.y.shape[0]);
        let both =
            || Ok::<_, cm_nn::Error>([self.each(backend, false)?, self.each(backend, true)?]);
        let weights = match norms {
            Some(_) => Some([both()?, both()?]),
            None => None,
        };
        let mut arguments = arguments![
            self.x.read(),
            self.y.read(),
            self.grad.read(),
            maybe_read(norms),
            self.args.read()
        ];
        for place in 0..4 {
            let matrix = weights.as_ref().map(|weights| &weights[place / 2][place % 2]);
            arguments.push(maybe_write(matrix));
        }
        arguments.extend(arguments![
            grads_t.write(),
            args_t.write(),
            n as u32,
            m as u32,
            self.split.argument()
        ]);
        let blocks = (self.split.components * n.div_ceil(TILE) * m.div_ceil(TILE)) as u32;
        backend.run(ResidualDifferences, "residual_weights", blocks, 256, 0, arguments)?;
        Ok(weights)
    }

    /// A side's gradient by weighted differences.
    fn by_differences(
        &self,
        backend: &CudaBackend,
        side: &Side<'_>,
        weights: Option<&[[CudaTensor; 2]; 2]>,
    ) -> Result<CudaTensor> {
        let (n, m) = (side.own.shape[0], side.others.shape[0]);
        let gradient = backend.new_tensor(side.own.shape)?;
        if let Some([weights, scales]) = weights {
            let arguments = arguments![
                side.own.read(),
                side.others.read(),
                weights[usize::from(side.is_right)].read(),
                scales[usize::from(side.is_right)].read(),
                gradient.update(),
                n as u32,
                m as u32,
                self.split.argument()
            ];
            // As `residual_differences.cu` has them.
            let columns = self.split.components * self.split.symmetric.div_ceil(TILE);
            let [small, large] = [16, 64].map(|rows| columns * n.div_ceil(rows));
            let (kernel, blocks) = match large * backend.replicas() {
                96.. => ("residual_norm_gradient_large", large),
                _ => ("residual_norm_gradient_small", small),
            };
            backend.run(ResidualDifferences, kernel, blocks as u32, 128, 0, arguments)?;
        }
        let nothing = Argument::Struct(vec![Argument::Nothing; 7], 120);
        self.add_maxima(backend, side, &gradient, nothing)?;
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
            self.split.argument()
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
            left: weights[index].clone(),
            right: halves,
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
        let (scale, per_component) =
            if side.is_right { (-1.0, 1) } else { (self.split.share(), 0) };
        let arguments = arguments![
            side.grads.read(),
            side.args.read(),
            gradient.update(),
            side.own.shape[0] as u32,
            side.others.shape[0] as u32,
            self.split.argument(),
            scale,
            per_component as u32,
            euclidean
        ];
        let blocks = (self.split.components * side.own.shape[0]) as u32;
        // As `residual_gradient.cu` has them: sums of each feature in two halves, or of a few by
        // thread.
        let shared = match self.split.asymmetric {
            0..=32 => 4 * 32 * 128,
            many => 4 * 2 * many.min(2048) as u32,
        };
        backend.run(ResidualGradient, "residual_max_gradient", blocks, 128, shared, arguments)
    }
}
