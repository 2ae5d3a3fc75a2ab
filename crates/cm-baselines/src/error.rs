//! What can go wrong.

use cm_nn::Shape;

/// Why a learner of this crate could not be made or moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is outside its range.
    #[error("setting `{setting}` must be {expected}, found {found}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A matrix of a batch does not have the size the learner was made for.
    #[error("batch: `{field}` must be {expected:?}, found {found:?}")]
    Batch {
        /// The matrix.
        field: &'static str,
        /// Its shape for this learner and number of rows.
        expected: Shape,
        /// What was given.
        found: Shape,
    },
    /// An operation on networks failed.
    #[error(transparent)]
    Network(#[from] cm_nn::Error),
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
