//! The heads, and their distances on plain slices.

use std::fmt;

use crate::iqe::{self, Groups};
use crate::residual::{self, Component, Split};
use crate::{Error, Float, Rows};

/// A function of two feature vectors that is a quasimetric whatever the features are.
///
/// ```
/// use cm_quasimetric::{Head, Rows};
///
/// let x = [0.0_f32, 1.0, 2.0, 3.0];
/// let y = [0.0_f32, 1.0, 2.0, 5.0, /* second point */ 3.0, 5.0, 2.0, 3.0];
/// let (x, y) = (Rows::new(&x, 1, 4)?, Rows::new(&y, 2, 4)?);
/// let mut distances = [0.0; 2];
/// Head::MRN.pairwise(x, y, &mut distances)?;
/// assert_eq!(distances, [0.0, 5.0]); // |(0, 1) - (3, 5)| = 5, and no feature of the second half is larger
/// # Ok::<(), cm_quasimetric::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Head {
    /// Metric residual network: Euclidean distance over the first half of the features plus the
    /// largest positive difference over the second.
    Mrn {
        /// The features are cut into this many equal runs, each an MRN of its own, and their
        /// distances averaged.
        #[cfg_attr(feature = "serde", serde(default = "one"))]
        components: usize,
        /// Added to every squared difference under the root. 0 makes the head a quasimetric; a
        /// positive value, which some other implementations use, makes d(x, x) positive.
        #[cfg_attr(feature = "serde", serde(default))]
        epsilon: f64,
    },
    /// Interval quasimetric embedding: the length of the union of the intervals
    /// `[x_i, max(x_i, y_i)]` in each group of features, reduced over the groups.
    Iqe {
        /// The features are cut into this many equal groups.
        groups: usize,
        /// How the groups' lengths become one distance.
        #[cfg_attr(feature = "serde", serde(default))]
        reduction: Reduction,
    },
    /// The largest positive difference of all features.
    Max,
}

/// How the lengths of IQE's groups become one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", deny_unknown_fields))]
#[non_exhaustive]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// The largest.
    Max,
    /// Their mean.
    Mean,
    /// `s * max + (1 - s) * mean` with `s = sigmoid(logit)`; the logit is usually learned.
    MaxMean {
        /// The logit of the maximum's share.
        #[cfg_attr(feature = "serde", serde(default))]
        logit: f64,
    },
}

#[cfg(feature = "serde")]
fn one() -> usize {
    1
}

impl Reduction {
    /// Half of the maximum and half of the mean.
    pub const MAX_MEAN: Self = Self::MaxMean { logit: 0.0 };
}

impl Default for Reduction {
    fn default() -> Self {
        Self::MAX_MEAN
    }
}

impl Head {
    /// One MRN over all features, exactly a quasimetric.
    pub const MRN: Self = Self::Mrn { components: 1, epsilon: 0.0 };

    /// Refuses a head that is none, and a number of features that it cannot divide.
    ///
    /// ```
    /// use cm_quasimetric::Head;
    ///
    /// assert!(Head::MRN.check(512).is_ok());
    /// assert!(Head::MRN.check(511).is_err());
    /// ```
    pub fn check(&self, features: usize) -> Result<(), Error> {
        self.kernel((1, features), (1, features)).map(drop)
    }

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
        let kernel = self.kernel(x.shape(), y.shape())?;
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
        let kernel = self.kernel(x.shape(), y.shape())?;
        length("distances", distances, (x.rows(), y.rows()))?;
        match kernel {
            Kernel::Residual(split) => residual::pairwise(split, x, y, distances),
            Kernel::Iqe(groups) => iqe::pairwise(groups, x, y, distances),
        }
        mark_bad_rows(x, y, distances);
        Ok(())
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

    /// [`pairwise`](Self::pairwise) that keeps what the gradients need beside the features, so that [`Recorded::backward`] takes about half the
    /// time of [`pairwise_backward`](Self::pairwise_backward).
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
        let (shapes, mut components) = ((x.shape(), y.shape()), Vec::new());
        match self.kernel(x.shape(), y.shape())? {
            Kernel::Residual(split) if split.components <= MOST_RECORDED => {
                length("distances", distances, (x.rows(), y.rows()))?;
                components = residual::pairwise_recorded(split, x, y, distances);
                mark_bad_rows(x, y, distances);
            }
            _ => self.pairwise(x, y, distances)?,
        }
        Ok(Recorded { head: *self, shapes, components })
    }

    /// Adds the gradient of `sum_i grad[i] * d(x_i, y_i)` to `grad_x` and `grad_y`, and returns the
    /// gradient of the logit of [`Reduction::MaxMean`] (0 for every other head).
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
        let kernel = self.kernel(x.shape(), y.shape())?;
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

    /// Adds the gradient of `sum_ij grad[i * m + j] * d(x_i, y_j)` to `grad_x` and `grad_y`, and
    /// returns the gradient of the logit of [`Reduction::MaxMean`] (0 for every other head).
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
        self.backward(&[], x, y, grad, grad_x, grad_y)
    }

    fn backward<E: Float>(
        &self,
        recorded: &[Component<E>],
        x: Rows<'_, E>,
        y: Rows<'_, E>,
        grad: &[E],
        grad_x: &mut [E],
        grad_y: &mut [E],
    ) -> Result<E, Error> {
        let kernel = self.kernel(x.shape(), y.shape())?;
        length("grad", grad, (x.rows(), y.rows()))?;
        length("grad_x", grad_x, x.shape())?;
        length("grad_y", grad_y, y.shape())?;
        Ok(match kernel {
            Kernel::Residual(split) => {
                residual::pairwise_backward(split, recorded, x, y, grad, grad_x, grad_y);
                E::ZERO
            }
            Kernel::Iqe(groups) => iqe::pairwise_backward(groups, x, y, grad, grad_x, grad_y),
        })
    }

    /// Checks the settings of the head and both shapes, and divides the features.
    fn kernel(&self, x: (usize, usize), y: (usize, usize)) -> Result<Kernel, Error> {
        let invalid = |reason| Error::Head { head: self.to_string(), reason };
        if x.1 != y.1 {
            return Err(Error::Width { x, y });
        }
        if x.0 == 0 || y.0 == 0 || x.1 == 0 {
            return Err(Error::Empty { x, y });
        }
        let width = x.1;
        let divide = |parts: Option<usize>| match parts {
            Some(parts) if width.is_multiple_of(parts) => Ok(width / parts),
            _ => {
                let multiple = parts.unwrap_or(usize::MAX);
                Err(Error::Indivisible { head: self.to_string(), multiple, x, y })
            }
        };
        match *self {
            Self::Mrn { components: 0, .. } => Err(invalid("there must be at least one component")),
            Self::Mrn { epsilon, .. } if !(epsilon >= 0.0 && epsilon.is_finite()) => {
                Err(invalid("epsilon must be finite and not negative"))
            }
            Self::Mrn { components, epsilon } => {
                let half = divide(components.checked_mul(2))?;
                Ok(Kernel::Residual(Split {
                    components,
                    symmetric: half,
                    asymmetric: half,
                    epsilon,
                }))
            }
            Self::Max => Ok(Kernel::Residual(Split {
                components: 1,
                symmetric: 0,
                asymmetric: width,
                epsilon: 0.0,
            })),
            Self::Iqe { groups: 0, .. } => Err(invalid("there must be at least one group")),
            Self::Iqe { reduction: Reduction::MaxMean { logit }, .. } if !logit.is_finite() => {
                Err(invalid("the logit must be finite"))
            }
            Self::Iqe { groups, reduction } => {
                let size = divide(Some(groups))?;
                Ok(Kernel::Iqe(Groups { count: groups, size, reduction }))
            }
        }
    }
}

/// Heads of more components than this are not recorded: each would keep two numbers for every pair.
const MOST_RECORDED: usize = 4;

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
        self.head.backward(&self.components, x, y, grad, grad_x, grad_y)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mrn { components, epsilon: 0.0 } => write!(f, "MRN of {components} components"),
            Self::Mrn { components, epsilon } => {
                write!(f, "MRN of {components} components with epsilon {epsilon}")
            }
            Self::Iqe { groups, reduction } => {
                write!(f, "IQE of {groups} groups reduced by {reduction:?}")
            }
            Self::Max => write!(f, "Max"),
        }
    }
}

/// A head whose settings fit the shapes.
enum Kernel {
    Residual(Split),
    Iqe(Groups),
}

/// Rows with a feature that is infinite or NaN have distance NaN to and from every other.
fn mark_bad_rows<E: Float>(x: Rows<'_, E>, y: Rows<'_, E>, distances: &mut [E]) {
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
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || (0..x.rows()).filter(|&i| !is_finite(x.row(i))).collect(),
    )
}

fn same_rows(x: (usize, usize), y: (usize, usize)) -> Result<(), Error> {
    if x.0 == y.0 { Ok(()) } else { Err(Error::RowCount { x, y }) }
}

fn length<E>(what: &'static str, slice: &[E], expected: (usize, usize)) -> Result<(), Error> {
    if expected.0.checked_mul(expected.1) == Some(slice.len()) {
        Ok(())
    } else {
        Err(Error::Length { what, found: slice.len(), expected })
    }
}

#[inline(always)]
fn is_finite<E: Float>(row: &[E]) -> bool {
    // Without short cuts, so that it is vectorised.
    row.iter().fold(true, |all, value| all & value.is_finite())
}
