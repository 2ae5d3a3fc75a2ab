//! The one error type of this crate.

use std::path::PathBuf;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be drawn.
    #[error("{}: {reason}", path.display())]
    Picture {
        /// The file it was for.
        path: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] cm_files::Error),
}
