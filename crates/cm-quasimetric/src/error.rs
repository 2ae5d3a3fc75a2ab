//! What can be wrong with a call.

/// Why a distance could not be computed. Every variant names the shapes it found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The two sets of points have different numbers of features.
    #[error("x and y must have the same number of features: x is {x:?}, y is {y:?}")]
    Width {
        /// Shape of `x`.
        x: (usize, usize),
        /// Shape of `y`.
        y: (usize, usize),
    },
    /// Row-wise distances pair the rows of `x` and `y` one to one.
    #[error("row-wise distances need as many rows in x as in y: x is {x:?}, y is {y:?}")]
    RowCount {
        /// Shape of `x`.
        x: (usize, usize),
        /// Shape of `y`.
        y: (usize, usize),
    },
    /// There are no points, or the points have no features.
    #[error("a batch must not be empty: x is {x:?}, y is {y:?}")]
    Empty {
        /// Shape of `x`.
        x: (usize, usize),
        /// Shape of `y`.
        y: (usize, usize),
    },
    /// The head divides the features into equal parts, and they do not divide.
    #[error(
        "{head} needs a number of features that is a multiple of {multiple}: x is {x:?}, y is {y:?}"
    )]
    Indivisible {
        /// The head, as it was configured.
        head: String,
        /// What the number of features must be a multiple of.
        multiple: usize,
        /// Shape of `x`.
        x: (usize, usize),
        /// Shape of `y`.
        y: (usize, usize),
    },
    /// A setting of the head that no number of features can satisfy.
    #[error("{head}: {reason}")]
    Head {
        /// The head, as it was configured.
        head: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A buffer has another length than the shape says.
    #[error("{what} has {found} elements, but its shape is {expected:?}")]
    Length {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The shape it was said to have.
        expected: (usize, usize),
    },
    /// dfdx could not allocate or record.
    #[cfg(feature = "dfdx")]
    #[error("dfdx: {0}")]
    Dfdx(String),
}
