//! What moves parameters.

mod adam;
mod ema;
mod sgd;

pub use adam::{Adam, AdamSettings};
pub use ema::Ema;
pub use sgd::Sgd;

use crate::{Error, Result};

/// Refuses a learning rate that is not positive and finite.
fn check_learning_rate(learning_rate: f32) -> Result<()> {
    if learning_rate > 0.0 && learning_rate.is_finite() {
        return Ok(());
    }
    let (setting, expected) = ("learning_rate", "positive and finite");
    Err(Error::Setting { setting, expected, found: learning_rate.to_string() })
}
