//! What a run writes down as it goes: losses and evaluations, as CSV and for TensorBoard.

mod table;
mod tensorboard;

pub(crate) use table::Table;
pub use table::{EvaluationRow, MetricRow, read_evaluations, read_metrics};
pub(crate) use tensorboard::Events;
