//! What moves parameters.

mod adam;
mod decay;
mod ema;
mod sgd;

pub use adam::{Adam, AdamSettings};
pub use decay::Decay;
pub use ema::Ema;
pub use sgd::Sgd;
