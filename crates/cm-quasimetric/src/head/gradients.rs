//! Gradients of the distances on plain slices.

use super::distances::{length, mark_bad_rows, same_rows};
use super::{Head, Kernel};
use crate::residual::Component;
use crate::{Error, Float, Rows, iqe, residual};

/// Heads of more components than this are not recorded: each would keep two numbers for every pair.
const MOST_RECORDED: usize = 4;

impl Head {
    /// [`pairwise`](Self::pairwise) that keeps what the gradients need beside the features, so that
    /// [`Recorded::backward`] takes about half the time of
    /// [`pairwise_backward`](Self::pairwise_backward).
    ///
    /// Memory beyond the arguments is O((n + m) * d), and O(n * m) kept in the record.
    ///
    /// ```
    /// use cm_quasimetric::{Head, Rows};
    ///
    /// let (x, y) = ([0.0_f32, 1.0], [3.0_f32, 0.5]);
    /// let (x, y) = (Rows::new(&x, 1, 2)?, Rows::new(&y, 1, 2)?);
    /// let mut distances = [0.0];
    /// let recorded = Head::MRN.pairwise_recorded(x, y, &mut distances)?;
    /// assert_eq!(distances, [3.5]);
    /// let (mut grad_x, mut grad_y) = ([0.0; 2], [0.0; 2]);
    /// recorded.backward(x, y, &[1.0], &mut grad_x, &mut grad_y)?;
    /// assert_eq!((grad_x, grad_y), ([-1.0, 1.0], [1.0, -1.0]));
    /// # Ok::<(), cm_quasimetric::Error>(())
    /// ```
    pub fn pairwise_recorded<E: Float>(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        distances: &mut [E],
    ) -> Result<Recorded<E>, Error> {
        E::pairwise_recorded(self, x, y, distances)
    }

    /// Adds the gradient of `sum_i grad[i] * d(x_i, y_i)` to `grad_x` and `grad_y`, and returns the
    /// gradient of the logit of [`MaxMean`](crate::Reduction::MaxMean) (0 for every other head).
    ///
    /// The gradient is finite for all finite features; at ties it is the subgradient described in
    /// the crate's documentation. It is meaningless for rows with infinite or NaN features.
    pub fn rowwise_backward<E: Float>(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        grad: &[E],
        grad_x: &mut [E],
        grad_y: &mut [E],
    ) -> Result<E, Error> {
        E::rowwise_backward(self, x, y, grad, (grad_x, grad_y))
    }

    /// Adds the gradient of `sum_ij grad[i * m + j] * d(x_i, y_j)` to `grad_x` and `grad_y`, and
    /// returns the gradient of the logit of [`MaxMean`](crate::Reduction::MaxMean) (0 for every other
    /// head).
    ///
    /// Memory beyond the arguments is O(n * m + (n + m) * d).
    /// The gradient is finite for all finite features; at ties it is the subgradient described in
    /// the crate's documentation. It is meaningless for rows with infinite or NaN features.
    pub fn pairwise_backward<E: Float>(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        grad: &[E],
        grad_x: &mut [E],
        grad_y: &mut [E],
    ) -> Result<E, Error> {
        E::pairwise_backward(self, None, x, y, grad, (grad_x, grad_y))
    }
}

pub(super) fn pairwise_recorded<E: Float>(
    head: &Head,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) -> Result<Recorded<E>, Error> {
    let (shapes, mut components) = ((x.shape(), y.shape()), Vec::new());
    match head.kernel(x.shape(), y.shape())? {
        Kernel::Residual(split) if split.components <= MOST_RECORDED => {
            length("distances", distances, (x.rows(), y.rows()))?;
            components = residual::pairwise_recorded(split, x, y, distances);
            mark_bad_rows(x, y, distances);
        }
        _ => head.pairwise(x, y, distances)?,
    }
    Ok(Recorded { head: *head, shapes, components })
}

pub(super) fn rowwise_backward<E: Float>(
    head: &Head,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    (grad_x, grad_y): (&mut [E], &mut [E]),
) -> Result<E, Error> {
    let kernel = head.kernel(x.shape(), y.shape())?;
    same_rows(x.shape(), y.shape())?;
    length("grad", grad, (x.rows(), 1))?;
    length("grad_x", grad_x, x.shape())?;
    length("grad_y", grad_y, y.shape())?;
    Ok(match kernel {
        Kernel::Residual(split) => {
            residual::rowwise_backward(split, x, y, grad, grad_x, grad_y);
            E::ZERO
        }
        Kernel::Iqe(groups) => iqe::rowwise_backward(groups, x, y, grad, grad_x, grad_y),
    })
}

pub(super) fn pairwise_backward<E: Float>(
    head: &Head,
    recorded: Option<&Recorded<E>>,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    (grad_x, grad_y): (&mut [E], &mut [E]),
) -> Result<E, Error> {
    let kernel = head.kernel(x.shape(), y.shape())?;
    length("grad", grad, (x.rows(), y.rows()))?;
    length("grad_x", grad_x, x.shape())?;
    length("grad_y", grad_y, y.shape())?;
    Ok(match kernel {
        Kernel::Residual(split) => {
            let components = recorded.map_or(&[][..], |recorded| &recorded.components);
            residual::pairwise_backward(split, components, x, y, grad, grad_x, grad_y);
            E::ZERO
        }
        Kernel::Iqe(groups) => iqe::pairwise_backward(groups, x, y, grad, grad_x, grad_y),
    })
}

/// What [`Head::pairwise_recorded`] kept of points for their gradients.
pub struct Recorded<E: Float> {
    head: Head,
    shapes: ((usize, usize), (usize, usize)),
    /// Empty if nothing is kept and everything found again.
    components: Vec<Component<E>>,
}

impl<E: Float> Recorded<E> {
    /// [`Head::pairwise_backward`] at the points that were recorded, which must be given again.
    pub fn backward(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        grad: &[E],
        grad_x: &mut [E],
        grad_y: &mut [E],
    ) -> Result<E, Error> {
        if (x.shape(), y.shape()) != self.shapes {
            let reason = "the record is of points of another shape";
            return Err(Error::Head { head: self.head.to_string(), reason });
        }
        E::pairwise_backward(&self.head, Some(self), x, y, grad, (grad_x, grad_y))
    }
}
