//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong when a world is described, read, solved, simulated or drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The discount is not a number strictly between 0 and 1.
    #[error("discount: expected a number strictly between 0 and 1, found {found}")]
    Discount {
        /// The value given.
        found: f64,
    },
    /// A world of walks that there is not.
    #[error("world: expected ring, corridor or fork, found `{found}`")]
    Course {
        /// The name given.
        found: String,
    },
    /// A process or a policy without states or without actions.
    #[error("{what}: expected at least 1, found 0")]
    Empty {
        /// `states` or `actions`.
        what: &'static str,
    },
    /// More states or transitions than the 32-bit indices can name.
    #[error("{what}: expected at most {limit}, found {found}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The largest number allowed.
        limit: usize,
        /// The number given.
        found: usize,
    },
    /// A state or an action that does not exist.
    #[error("{what}: expected an index below {limit}, found {found}")]
    Index {
        /// The argument or key that holds the index.
        what: String,
        /// The number of things that can be named.
        limit: usize,
        /// The index given.
        found: usize,
    },
    /// A number to draw that is negative or NaN.
    #[error("{what}: expected a number that is not negative, found {found}")]
    Value {
        /// The argument or key.
        what: String,
        /// The value given.
        found: f64,
    },
    /// A probability that is negative, above 1, infinite or NaN.
    #[error("{what}: expected a probability in [0, 1], found {found}")]
    Probability {
        /// The row, argument or key that holds the probability.
        what: String,
        /// The value given.
        found: f64,
    },
    /// Probabilities that do not sum to 1.
    #[error("{what}: expected probabilities that sum to 1 (within {tolerance:e}), found {found}")]
    NotADistribution {
        /// The row, argument or key that holds the probabilities.
        what: String,
        /// How far from 1 a sum may be.
        tolerance: f64,
        /// The sum.
        found: f64,
    },
    /// A table of another length than the process asks for.
    #[error("{what}: expected {expected} entries, found {found}")]
    Length {
        /// The argument or key.
        what: String,
        /// The length asked for.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// A row of a process that is described twice.
    #[error("{row}: expected one description, found two")]
    Twice {
        /// The state, and the action of a controlled process.
        row: String,
    },
    /// A grid that cannot be read.
    #[error("grid, line {line}, column {column}: {reason}")]
    Grid {
        /// Line of the layout, from 1.
        line: usize,
        /// Column of the layout, from 1.
        column: usize,
        /// What was expected and what was found.
        reason: String,
    },
    /// A rule of a grid that cannot be applied.
    #[error("grid, {key}: {reason}")]
    GridRule {
        /// The key of the rule.
        key: String,
        /// What was expected and what was found.
        reason: String,
    },
    /// The iteration towards one goal stalled before it reached its tolerance.
    #[error(
        "goal {goal}: expected to converge, found a residual of {found:e} after {rounds} rounds"
    )]
    NotConverged {
        /// The goal state.
        goal: usize,
        /// The largest residual of a distance.
        found: f64,
        /// Rounds of policy iteration done.
        rounds: usize,
    },
    /// An action that no world can carry out.
    #[error("action: expected finite numbers, found {found:?}")]
    Action {
        /// The action given.
        found: Vec<f32>,
    },
    /// A mean length of trajectories that none can have.
    #[error("mean_length: expected a finite number of at least 1, found {found}")]
    MeanLength {
        /// The value given.
        found: f64,
    },
    /// A file that could not be written.
    #[cfg(any(feature = "tabular", feature = "pictures"))]
    #[error(transparent)]
    Write(#[from] cm_files::Error),
    /// A file that cannot be read.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// A file whose content does not describe what was asked for.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The place, the key, the expected and the found.
        reason: String,
    },
    /// A number that is NaN or infinite.
    #[error("{what}: expected a finite number, found {found}")]
    NotFinite {
        /// The argument and the place in it.
        what: String,
        /// The value given.
        found: f64,
    },
    /// A task that does not exist.
    #[error("no task `{found}`; there are: {known}")]
    UnknownTask {
        /// The name given.
        found: String,
        /// The names there are.
        known: String,
    },
    /// A rule for cells that does not exist.
    #[error("no rule `{found}` for cells; there are: floor, round")]
    UnknownCellRule {
        /// The name given.
        found: String,
    },
    /// A recipe that does not exist.
    #[error("no recipe `{found}` for data; there are: d4rl, d4rl-code, clean")]
    UnknownRecipe {
        /// The name given.
        found: String,
    },
    /// A place that is in a wall or outside the maze.
    #[error("{what}: expected a place within the maze {maze}, found {place:?}")]
    OutsideMaze {
        /// Which place.
        what: &'static str,
        /// Where it is.
        place: [f64; 2],
        /// The maze.
        maze: &'static str,
    },
    /// MuJoCo's library is nowhere to be found.
    #[error(
        "MuJoCo was not found ({} is not there, CM_MUJOCO is not set, and the system has none): \
         run `cm mujoco install` (in a checkout, `cargo xtask mujoco install`), or set CM_MUJOCO to \
         the file of its library",
        looked_at.display()
    )]
    SimulatorMissing {
        /// Where an installed one would be.
        looked_at: PathBuf,
    },
    /// A library that cannot be used as MuJoCo.
    #[error("{}: {reason}", path.display())]
    SimulatorLibrary {
        /// The library.
        path: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// The simulator failed, or the simulation diverged.
    #[error("MuJoCo: {reason}")]
    Simulator {
        /// What it said.
        reason: String,
    },
    /// A picture that cannot be drawn or written.
    #[cfg(feature = "pictures")]
    #[error(transparent)]
    Picture(#[from] cm_draw::Error),
}

/// `Ok` when `found` names one of `limit` things.
#[cfg(feature = "tabular")]
pub(crate) fn check_index(
    what: impl FnOnce() -> String,
    found: usize,
    limit: usize,
) -> Result<(), Error> {
    if found < limit { Ok(()) } else { Err(Error::Index { what: what(), limit, found }) }
}

/// `Ok` when `found` is a number in `[0, 1]`.
#[cfg(feature = "tabular")]
pub(crate) fn check_probability(what: impl FnOnce() -> String, found: f64) -> Result<(), Error> {
    if (0.0..=1.0).contains(&found) {
        Ok(())
    } else {
        Err(Error::Probability { what: what(), found })
    }
}
