//! The heads as dfdx operations on CPU tensors.

use dfdx::prelude::{
    Cpu, Dim, Dtype, Gradients, HasShape, Merge, NoneTape, PutTape, Rank1, ReshapeTo, SplitTape,
    Tape, Tensor, TensorFromVec,
};
use dfdx::tensor::{CopySlice, CpuError};

use crate::float::Kernel;
use crate::{Error, Float, Head, Reduction, Rows};

/// The distance between each row of `x` and the same row of `y`.
///
/// Like dfdx's own binary operations, the result carries the tape of `x`, merged with that of `y`.
///
/// ```
/// use cm_quasimetric::{Head, rowwise};
/// use dfdx::prelude::*;
///
/// let dev = Cpu::default();
/// let x: Tensor<(usize, usize), f32, _> = dev.tensor_from_vec(vec![1.0, 4.0, 0.0, 0.0], (2, 2));
/// let y = dev.tensor_from_vec(vec![3.0, 1.0, 1.0, 1.0], (2, 2));
/// let distances = rowwise(Head::Max, x.leaky_trace(), y)?;
/// assert_eq!(distances.as_vec(), [3.0, 0.0]);
/// let gradients = distances.sum().backward();
/// assert_eq!(gradients.get(&x).as_vec(), [0.0, 1.0, 0.0, 0.0]);
/// # Ok::<(), cm_quasimetric::Error>(())
/// ```
pub fn rowwise<N: Dim, D: Dim, E, TX, TY>(
    head: Head,
    x: Tensor<(N, D), E, Cpu, TX>,
    y: Tensor<(N, D), E, Cpu, TY>,
) -> Result<Tensor<(N,), E, Cpu, TX>, Error>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    let shape = (x.shape().0,);
    record(head, Form::Rowwise, None, x, y, shape)
}

/// The distance between each row of `x` and each row of `y`.
///
/// Like dfdx's own binary operations, the result carries the tape of `x`, merged with that of `y`.
///
/// ```
/// use cm_quasimetric::{Head, pairwise};
/// use dfdx::prelude::*;
///
/// let dev = Cpu::default();
/// let x: Tensor<(usize, usize), f64, _> = dev.sample_normal_like(&(8, 64));
/// let y: Tensor<(usize, usize), f64, _> = dev.sample_normal_like(&(5, 64));
/// let distances = pairwise(Head::MRN, x.leaky_trace(), y)?;
/// assert_eq!(*distances.shape(), (8, 5));
/// let gradients = distances.mean().backward();
/// assert_eq!(*gradients.get(&x).shape(), (8, 64));
/// # Ok::<(), cm_quasimetric::Error>(())
/// ```
pub fn pairwise<N: Dim, M: Dim, D: Dim, E, TX, TY>(
    head: Head,
    x: Tensor<(N, D), E, Cpu, TX>,
    y: Tensor<(M, D), E, Cpu, TY>,
) -> Result<Tensor<(N, M), E, Cpu, TX>, Error>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    let shape = (x.shape().0, y.shape().0);
    record(head, Form::Pairwise, None, x, y, shape)
}

/// Row-wise distances of IQE with a learned mix of maximum and mean; `logit` takes part in the
/// tape.
///
/// For a head that trains with the rest of a dfdx model, see [`MaxMeanIqe`](crate::MaxMeanIqe);
/// this function is for a number of groups that is chosen at run time.
pub fn rowwise_max_mean<N: Dim, D: Dim, E, TX, TY>(
    groups: usize,
    logit: &Tensor<Rank1<1>, E, Cpu>,
    x: Tensor<(N, D), E, Cpu, TX>,
    y: Tensor<(N, D), E, Cpu, TY>,
) -> Result<Tensor<(N,), E, Cpu, TX>, Error>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    let shape = (x.shape().0,);
    record(max_mean(groups, logit), Form::Rowwise, Some(logit.clone()), x, y, shape)
}

/// Pairwise distances of IQE with a learned mix of maximum and mean; `logit` takes part in the
/// tape.
///
/// ```
/// use cm_quasimetric::pairwise_max_mean;
/// use dfdx::prelude::*;
///
/// let dev = Cpu::default();
/// let logit: Tensor<Rank1<1>, f32, _> = dev.zeros();
/// let groups = 4; // known only at run time
/// let x: Tensor<(usize, usize), f32, _> = dev.sample_normal_like(&(3, 4 * groups));
/// let distances = pairwise_max_mean(groups, &logit, x.leaky_trace(), x)?;
/// let gradients = distances.mean().backward();
/// assert!(gradients.get(&logit).array()[0] > 0.0);
/// # Ok::<(), cm_quasimetric::Error>(())
/// ```
pub fn pairwise_max_mean<N: Dim, M: Dim, D: Dim, E, TX, TY>(
    groups: usize,
    logit: &Tensor<Rank1<1>, E, Cpu>,
    x: Tensor<(N, D), E, Cpu, TX>,
    y: Tensor<(M, D), E, Cpu, TY>,
) -> Result<Tensor<(N, M), E, Cpu, TX>, Error>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    let shape = (x.shape().0, y.shape().0);
    record(max_mean(groups, logit), Form::Pairwise, Some(logit.clone()), x, y, shape)
}

fn max_mean<E: Float + Dtype>(groups: usize, logit: &Tensor<Rank1<1>, E, Cpu>) -> Head {
    let logit = Kernel::to_f64(logit[[0]]);
    Head::Iqe { groups, reduction: Reduction::MaxMean { logit } }
}

/// Which rows of `x` meet which rows of `y`.
#[derive(Clone, Copy)]
enum Form {
    Rowwise,
    Pairwise,
}

/// Computes the distances and records their backward pass.
fn record<N: Dim, M: Dim, D: Dim, S: dfdx::shapes::Shape, E, TX, TY>(
    head: Head,
    form: Form,
    logit: Option<Tensor<Rank1<1>, E, Cpu>>,
    x: Tensor<(N, D), E, Cpu, TX>,
    y: Tensor<(M, D), E, Cpu, TY>,
    shape: S,
) -> Result<Tensor<S, E, Cpu, TX>, Error>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    // Free for tensors that are contiguous already; broadcast and permuted ones are copied.
    let (x, x_tape) = x.try_contiguous().map_err(dfdx_error)?.split_tape();
    let (y, y_tape) = y.try_contiguous().map_err(dfdx_error)?.split_tape();
    let mut tape = x_tape.merge(y_tape);
    let (x_data, y_data) = (Values::of(&x), Values::of(&y));

    let mut distances = vec![E::ZERO; shape.num_elements()];
    match form {
        Form::Rowwise => head.rowwise(x_data.rows()?, y_data.rows()?, &mut distances)?,
        Form::Pairwise => head.pairwise(x_data.rows()?, y_data.rows()?, &mut distances)?,
    }
    let out = x.device().try_tensor_from_vec(distances, shape).map_err(dfdx_error)?;

    let output = out.retaped::<NoneTape>();
    tape.add_backward_op(move |gradients| {
        let grad = gradients.get_or_alloc_mut(&output)?.to_vec();
        let mut grad_x = take_gradient(gradients, &x)?;
        // If x and y are one tensor, its gradient has just been taken.
        let mut grad_y = take_gradient(gradients, &y)?;
        let same = grad_y.len() != y_data.data.len();
        if same {
            grad_y = vec![E::ZERO; y_data.data.len()];
        }
        let (x_rows, y_rows) = (x_data.rows(), y_data.rows());
        let grad_logit = match (x_rows, y_rows, form) {
            (Ok(x), Ok(y), Form::Rowwise) => {
                head.rowwise_backward(x, y, &grad, &mut grad_x, &mut grad_y)
            }
            (Ok(x), Ok(y), Form::Pairwise) => {
                head.pairwise_backward(x, y, &grad, &mut grad_x, &mut grad_y)
            }
            (Err(error), ..) | (_, Err(error), _) => Err(error),
        }
        // Every shape was checked in the forward pass.
        .map_err(|_| CpuError::WrongNumElements)?;
        if same {
            for (grad_x, grad_y) in grad_x.iter_mut().zip(grad_y) {
                *grad_x += grad_y;
            }
        } else {
            **gradients.get_or_alloc_mut(&y)? = grad_y;
        }
        **gradients.get_or_alloc_mut(&x)? = grad_x;
        if let Some(logit) = logit {
            gradients.get_or_alloc_mut(&logit)?[0] += grad_logit;
        }
        Ok(())
    });
    Ok(out.put_tape(tape))
}

/// A copy of a tensor's values; dfdx lends no slices.
struct Values<E> {
    data: Vec<E>,
    shape: (usize, usize),
}

impl<E: Float + Dtype> Values<E> {
    fn of<N: Dim, D: Dim>(tensor: &Tensor<(N, D), E, Cpu>) -> Self {
        let shape = (tensor.shape().0.size(), tensor.shape().1.size());
        let mut data = vec![E::ZERO; shape.0 * shape.1];
        Cpu::copy_into(tensor, &mut data);
        Self { data, shape }
    }

    fn rows(&self) -> Result<Rows<'_, E>, Error> {
        Rows::new(&self.data, self.shape.0, self.shape.1)
    }
}

/// Moves a tensor's gradient out of the tape; it must be put back.
fn take_gradient<N: Dim, D: Dim, E: Float + Dtype>(
    gradients: &mut Gradients<E, Cpu>,
    tensor: &Tensor<(N, D), E, Cpu>,
) -> Result<Vec<E>, CpuError> {
    Ok(std::mem::take(&mut **gradients.get_or_alloc_mut(tensor)?))
}

fn dfdx_error(error: CpuError) -> Error {
    Error::Dfdx(error.to_string())
}
