//! What can go wrong, with the operation, the expected and the found named.

use std::path::PathBuf;

/// Rows and columns of a matrix.
pub type Shape = [usize; 2];

/// Why an operation of this crate was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation was given matrices whose shapes do not fit together.
    #[error("{operation}: expected {expected}, found {found}")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// What it needs.
        expected: String,
        /// What it was given.
        found: String,
    },
    /// A setting is outside its range.
    #[error("setting `{setting}` must be {expected}, found {found}")]
    Setting {
        /// The setting's key, from the outermost table to it: `actor.adam.epsilon`.
        setting: String,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// Two parameters of one set were given the same name.
    #[error("there is already a parameter named `{0}`")]
    DuplicateParameter(String),
    /// A parameter that is needed is not there.
    #[error("parameter `{name}` is missing from {place}")]
    MissingParameter {
        /// The parameter.
        name: String,
        /// Where it was looked for.
        place: &'static str,
    },
    /// A snapshot holds a matrix that no parameter takes.
    #[error("the snapshot holds `{0}`, which is not a parameter here")]
    UnknownParameter(String),
    /// A matrix that should fill a parameter has another shape.
    #[error("parameter `{name}` is {expected:?}, but what should fill it is {found:?}")]
    ParameterShape {
        /// The parameter.
        name: String,
        /// Its shape.
        expected: Shape,
        /// The other shape.
        found: Shape,
    },
    /// A stored matrix holds an infinity or not-a-number.
    #[error("parameter `{name}`: value {value} at row {row}, column {column} is not finite")]
    NotFinite {
        /// The parameter.
        name: String,
        /// The value.
        value: f32,
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// Gradients were asked for while others were being taken.
    #[error("gradients cannot be taken inside the loss of other gradients")]
    NestedGradients,
    /// Something that a recorded step could not repeat was done inside one.
    #[error("{operation} cannot be done inside a captured step: {instead}")]
    InsideCapture {
        /// The operation.
        operation: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The backend runs another number of seeds than was asked for.
    #[error("{what}: expected {expected}, found {found}")]
    Replicas {
        /// The backend or the operation.
        what: &'static str,
        /// How many it takes.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// A quasimetric head refused its inputs.
    #[error(transparent)]
    Quasimetric(#[from] cm_quasimetric::Error),
    /// Bytes are not a safetensors file of the kind this crate reads.
    #[error("safetensors: {0}")]
    Safetensors(String),
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
    /// A file's content was refused.
    #[error("{}: {cause}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: Box<Error>,
    },
    /// The backend's device failed.
    #[error("backend: {0}")]
    Backend(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A [`Error::Shape`] that lists the shapes found.
    pub(crate) fn shape(
        operation: &'static str,
        expected: impl Into<String>,
        found: &[Shape],
    ) -> Self {
        let found = found.iter().map(|shape| format!("{shape:?}")).collect::<Vec<_>>();
        Self::Shape { operation, expected: expected.into(), found: found.join(" and ") }
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
