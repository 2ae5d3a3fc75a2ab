//! Networks whose sizes are chosen at run time.

mod fixed;
mod layer_norm;
mod linear;
mod mlp;
mod quasimetric;
mod twin;

pub use fixed::{FixedMlp, FixedQuasimetric};
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{Mlp, MlpSettings};
pub use quasimetric::{Quasimetric, QuasimetricSettings};
pub use twin::Twin;
