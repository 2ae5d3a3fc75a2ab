//! What moves parameters.

mod adam;
mod ema;
mod sgd;

pub use adam::{Adam, AdamSettings};
pub use ema::Ema;
pub use sgd::Sgd;
