//! What can go wrong, said with the file, the key, the expected and the found.

use std::path::{Path, PathBuf};

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something went wrong with the file at `path`.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        cause: Box<Error>,
    },
    /// The operating system refused an operation.
    #[error("could not {operation}: {cause}")]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// The file is not what its format demands.
    #[error("not a valid {format} file: {reason}")]
    Format {
        /// The name of the format.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The file is of a kind that this build does not read.
    #[error("{format} files cannot be read without the feature `{feature}` of cm-replay")]
    Feature {
        /// The name of the format.
        format: &'static str,
        /// The feature that reads it.
        feature: &'static str,
    },
    /// The file ends before the data its header promises.
    #[error("array `{key}` is truncated: expected {expected} bytes, found {found}")]
    Truncated {
        /// The array.
        key: String,
        /// Bytes promised.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// A header promises more than the file's bytes could ever decode to.
    #[error("array `{key}` claims {claimed} bytes, but the file can hold at most {possible}")]
    Implausible {
        /// The array.
        key: String,
        /// Bytes the header claims.
        claimed: u128,
        /// An upper bound on what the stored bytes can decode to.
        possible: u64,
    },
    /// The file has no array of that name.
    #[error(
        "no array `{key}`; the file has: {}",
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    )]
    Missing {
        /// The array looked for.
        key: String,
        /// The arrays there are.
        found: Vec<String>,
    },
    /// An array has another shape than needed.
    #[error("array `{key}` has shape {found:?}, expected {expected}")]
    Shape {
        /// The array.
        key: String,
        /// The shape needed.
        expected: String,
        /// Its shape.
        found: Vec<usize>,
    },
    /// An array has an element type that cannot be read as numbers here.
    #[error("array `{key}` has elements of type {found}, expected {expected}")]
    ElementType {
        /// The array.
        key: String,
        /// The types accepted.
        expected: &'static str,
        /// Its type.
        found: String,
    },
    /// A number is NaN or infinite.
    #[error("array `{key}` holds {value} at row {row}, column {column}; expected finite numbers")]
    NotFinite {
        /// The array.
        key: String,
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// The number.
        value: f32,
    },
    /// The trajectory ends do not cut the rows into non-empty trajectories.
    #[error("trajectory ends: {reason}")]
    Trajectories {
        /// What is wrong.
        reason: String,
    },
    /// A row of a CSV file cannot be used.
    #[error("line {line}, column `{column}`: found `{found}`, expected {expected}")]
    Cell {
        /// The line, counted from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
    /// The stored checksum does not match the data.
    #[error("checksum of {part} is {found:016x}, expected {expected:016x}: the file is damaged")]
    Checksum {
        /// The part of the file.
        part: String,
        /// What the file says.
        expected: u64,
        /// What its bytes give.
        found: u64,
    },
    /// The file was written by a later version of this crate.
    #[error("version {found} of the file format, this program reads version {expected}")]
    Version {
        /// The version read here.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// A setting is outside its range.
    #[error("{name} must be {expected}, found {found}")]
    Parameter {
        /// The setting.
        name: &'static str,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A caller's buffer has another length than the batch needs.
    #[error("the buffer `{buffer}` holds {found} numbers, expected {expected}")]
    Buffer {
        /// The buffer.
        buffer: &'static str,
        /// The length needed.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// There is nothing to draw from.
    #[error("no transition to draw: all {trajectories} trajectories have a single step")]
    NoTransitions {
        /// How many trajectories there are.
        trajectories: usize,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(operation: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Self::Io { operation, cause }
    }

    pub(crate) fn format(format: &'static str, reason: impl ToString) -> Self {
        Self::Format { format, reason: reason.to_string() }
    }

    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File { .. } => self,
            other => Self::File { path: path.to_owned(), cause: Box::new(other) },
        }
    }
}
