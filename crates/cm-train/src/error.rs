//! The one error type of this crate.

use std::path::{Path, PathBuf};

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network, a loss or a method refused something.
    #[error(transparent)]
    Network(#[from] cm_nn::Error),
    /// A data set could not be read or sampled.
    #[error(transparent)]
    Data(#[from] cm_replay::Error),
    /// An environment refused something.
    #[error(transparent)]
    Environment(#[from] cm_envs::Error),
    /// A setting is outside its range.
    #[error("{setting}: expected {expected}, found {found}")]
    Setting {
        /// The setting's key, from the outermost table to it: `goals.gamma`.
        setting: String,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] cm_files::Error),
    /// A file could not be read.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file's content is not what it should be.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The key or place, the expected and the found.
        reason: String,
    },
    /// The folder of a run holds a run with other settings.
    #[error(
        "{}: this folder holds a run with other settings (`{key}`); choose another name, or remove the folder to start anew",
        path.display()
    )]
    OtherRun {
        /// The settings found.
        path: PathBuf,
        /// The first key that differs.
        key: String,
    },
    /// Somebody else trains in the folder of a run.
    #[error(
        "{}: another process is training in this folder; wait for it, or choose another name",
        path.display()
    )]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// Training diverged.
    #[error("step {step}: {what} is {value}, so training has diverged; {kept}")]
    Diverged {
        /// The step after which it was seen.
        step: u64,
        /// The metric or parameter.
        what: String,
        /// Its value.
        value: f32,
        /// Which checkpoint is left.
        kept: String,
    },
    /// The system had no thread for an evaluation.
    #[error("no thread for an evaluation: {0}")]
    Thread(std::io::Error),
    /// A run that was trained together with others ended because all of them did.
    #[error("{0}")]
    Together(String),
    /// A method that learns no distance was asked for one.
    #[error("{method} learns no distance between states")]
    NoDistance {
        /// The method.
        method: &'static str,
    },
    /// The distance between two states overflowed, or one of them is not finite.
    #[error("a distance between two states is NaN: expected finite states, near the data")]
    NotANumber,
    /// States of another width than the model's.
    #[error("{what}: expected {expected} numbers, found {found}")]
    Width {
        /// What was given.
        what: String,
        /// The model's width.
        expected: usize,
        /// The width given.
        found: usize,
    },
    /// The run's task has no environment to act in.
    #[error("the data of this run has no environment, so there is nothing to evaluate in")]
    NoEnvironment,
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::File`] about `path`, for `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |cause| Self::File { path: path.to_path_buf(), cause }
    }

    pub(crate) fn content(path: &Path, reason: impl Into<String>) -> Self {
        Self::Content { path: path.to_path_buf(), reason: reason.into() }
    }
}
