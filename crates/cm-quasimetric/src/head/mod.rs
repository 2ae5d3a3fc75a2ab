//! The heads: their settings, and how each divides the features.

mod compiled;
mod distances;
mod gradients;

use std::fmt;

pub(crate) use self::compiled::Compiled;
pub use self::gradients::Recorded;
use crate::Error;
use crate::iqe::Groups;
use crate::residual::Split;

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
