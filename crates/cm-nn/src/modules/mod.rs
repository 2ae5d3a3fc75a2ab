//! Networks whose sizes are chosen at run time.

mod layer_norm;
mod linear;
mod mlp;
mod quasimetric;
mod twin;

pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{Mlp, MlpSettings};
pub use quasimetric::{HeadSettings, Quasimetric, QuasimetricSettings, ReductionSettings};
pub use twin::Twin;
