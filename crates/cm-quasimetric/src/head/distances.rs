//! Distances on plain slices.

use pulp::{Arch, Simd, WithSimd};

use super::{Head, Kernel};
use crate::{Error, Float, Rows, iqe, residual};

impl Head {
    /// The distance between each row of `x` and the same row of `y`: n distances.
    ///
    /// ```
    /// use cm_quasimetric::{Head, Rows};
    ///
    /// let (x, y) = ([1.0_f64, 4.0], [3.0, 1.0]);
    /// let mut distance = [0.0];
    /// Head::Max.rowwise(Rows::new(&x, 1, 2)?, Rows::new(&y, 1, 2)?, &mut distance)?;
    /// assert_eq!(distance, [3.0]);
    /// # Ok::<(), cm_quasimetric::Error>(())
    /// ```
    pub fn rowwise<E: Float>(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        distances: &mut [E],
    ) -> Result<(), Error> {
        E::rowwise(self, x, y, distances)
    }

    /// The distance from one point to another, on this thread alone: for few of them the others
    /// take longer to ask.
    ///
    /// ```
    /// use cm_quasimetric::Head;
    ///
    /// assert_eq!(Head::Max.distance(&[1.0_f64, 4.0], &[3.0, 1.0])?, 3.0);
    /// # Ok::<(), cm_quasimetric::Error>(())
    /// ```
    pub fn distance<E: Float>(&self, x: &[E], y: &[E]) -> Result<E, Error> {
        E::distance(self, x, y)
    }

    /// [`rowwise`](Self::rowwise) into a vector of its own.
    pub fn rowwise_vec<E: Float>(&self, x: Rows<'_, E>, y: Rows<'_, E>) -> Result<Vec<E>, Error> {
        self.kernel(x.shape(), y.shape())?; // before anything is allocated
        let mut distances = vec![E::ZERO; x.rows()];
        self.rowwise(x, y, &mut distances)?;
        Ok(distances)
    }

    /// The distance between each row of `x` and each row of `y`: `distances[i * m + j]` is
    /// d(x_i, y_j).
    ///
    /// Memory beyond the arguments is O((n + m) * d). A row with a feature that is infinite or NaN
    /// has distance NaN to and from every other.
    pub fn pairwise<E: Float>(
        &self,
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        distances: &mut [E],
    ) -> Result<(), Error> {
        E::pairwise(self, x, y, distances)
    }

    /// [`pairwise`](Self::pairwise) into a vector of its own.
    ///
    /// ```
    /// use cm_quasimetric::{Head, Rows};
    ///
    /// let points = [0.0_f32, 2.0, 5.0];
    /// let points = Rows::new(&points, 3, 1)?;
    /// let distances = Head::Max.pairwise_vec(points, points)?;
    /// assert_eq!(distances, [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 5.0, 3.0, 0.0]);
    /// # Ok::<(), cm_quasimetric::Error>(())
    /// ```
    pub fn pairwise_vec<E: Float>(&self, x: Rows<'_, E>, y: Rows<'_, E>) -> Result<Vec<E>, Error> {
        self.kernel(x.shape(), y.shape())?; // before anything is allocated
        let mut distances = vec![E::ZERO; x.rows().saturating_mul(y.rows())];
        self.pairwise(x, y, &mut distances)?;
        Ok(distances)
    }
}

pub(super) fn rowwise<E: Float>(
    head: &Head,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) -> Result<(), Error> {
    let kernel = head.kernel(x.shape(), y.shape())?;
    same_rows(x.shape(), y.shape())?;
    length("distances", distances, (x.rows(), 1))?;
    match kernel {
        Kernel::Residual(split) => residual::rowwise(split, x, y, distances),
        Kernel::Iqe(groups) => iqe::rowwise(groups, x, y, distances),
    }
    let bad = bad_rows(x).into_iter().chain(bad_rows(y));
    bad.for_each(|i| distances[i] = E::NAN);
    Ok(())
}

pub(super) fn distance<E: Float>(head: &Head, x: &[E], y: &[E]) -> Result<E, Error> {
    let kernel = head.kernel((1, x.len()), (1, y.len()))?;
    let (x, y) = (Rows::new(x, 1, x.len())?, Rows::new(y, 1, y.len())?);
    let mut distance = [E::ZERO];
    match kernel {
        Kernel::Residual(split) => residual::one(split, x, y, &mut distance),
        Kernel::Iqe(groups) => iqe::rowwise(groups, x, y, &mut distance),
    }
    let is_bad = [x, y].iter().any(|&point| !bad_rows(point).is_empty());
    Ok(if is_bad { E::NAN } else { distance[0] })
}

pub(super) fn pairwise<E: Float>(
    head: &Head,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) -> Result<(), Error> {
    let kernel = head.kernel(x.shape(), y.shape())?;
    length("distances", distances, (x.rows(), y.rows()))?;
    match kernel {
        Kernel::Residual(split) => residual::pairwise(split, x, y, distances),
        Kernel::Iqe(groups) => iqe::pairwise(groups, x, y, distances),
    }
    mark_bad_rows(x, y, distances);
    Ok(())
}

/// Rows with a feature that is infinite or NaN have distance NaN to and from every other.
pub(super) fn mark_bad_rows<E: Float>(x: Rows<'_, E>, y: Rows<'_, E>, distances: &mut [E]) {
    let bad_columns = bad_rows(y);
    for i in bad_rows(x) {
        distances[i * y.rows()..][..y.rows()].fill(E::NAN);
    }
    for row in distances.chunks_exact_mut(y.rows()) {
        bad_columns.iter().for_each(|&j| row[j] = E::NAN);
    }
}

/// The rows with a feature that is infinite or NaN.
fn bad_rows<E: Float>(x: Rows<'_, E>) -> Vec<usize> {
    Arch::new().dispatch(BadRows(x))
}

struct BadRows<'a, E>(Rows<'a, E>);

impl<E: Float> WithSimd for BadRows<'_, E> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<usize> {
        let mut bad = Vec::new();
        for i in 0..self.0.rows() {
            let (row, rest) = E::as_vectors::<S>(self.0.row(i));
            let rest = E::load(simd, rest);
            // What is infinite or NaN differs from itself by NaN.
            let mut differs = E::minus(simd, rest, rest);
            for &x in row {
                differs = E::plus(simd, differs, E::minus(simd, x, x));
            }
            if E::sum(simd, differs) != E::ZERO {
                bad.push(i);
            }
        }
        bad
    }
}

pub(super) fn same_rows(x: (usize, usize), y: (usize, usize)) -> Result<(), Error> {
    if x.0 == y.0 { Ok(()) } else { Err(Error::RowCount { x, y }) }
}

pub(super) fn length<E>(
    what: &'static str,
    slice: &[E],
    expected: (usize, usize),
) -> Result<(), Error> {
    if expected.0.checked_mul(expected.1) == Some(slice.len()) {
        Ok(())
    } else {
        Err(Error::Length { what, found: slice.len(), expected })
    }
}
