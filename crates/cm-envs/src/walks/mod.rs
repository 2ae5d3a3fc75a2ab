//! Continuous worlds whose distances are known: what a data set of one's own looks like, with the
//! truth beside it.
//!
//! Each world is a line that is bent through the plane: a walker stands at a place of the line, and
//! what is observed is the plane's point there with some noise. The line is also cut into cells
//! much finer than a step, and the walk from cell to cell is a Markov chain, whose successor
//! distances are exact (feature `tabular`).

mod collect;
mod course;
#[cfg(feature = "tabular")]
mod exact;

pub use collect::Collected;
pub use course::Course;
#[cfg(feature = "tabular")]
pub use exact::ExactDistances;

/// The stream of random numbers of these worlds; step `k` is trajectory `k`.
const STREAM: u32 = 0x220;
