//! The policy that walks where the data sets of AntMaze are generated: the one that is shipped, how
//! well it walks, and how another is trained.

mod evaluate;
mod mirror;
mod policy;
mod train;

pub use evaluate::{EvaluateSettings, Evaluator, Walks};
pub use policy::{Actions, Expert, ExpertFile};
pub use train::{Rules, TrainSettings, train};
