//! Checks of settings.

use cm_nn::{Error, Result};

/// Refuses a setting unless `holds`.
pub(crate) fn require(
    holds: bool,
    setting: &'static str,
    expected: &'static str,
    found: impl ToString,
) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::Setting { setting, expected, found: found.to_string() })
}

/// Refuses a number that is not positive and finite.
pub(crate) fn positive(setting: &'static str, x: f32) -> Result<()> {
    require(x > 0.0 && x.is_finite(), setting, "positive and finite", x)
}

/// Refuses a number that is negative or not finite.
pub(crate) fn not_negative(setting: &'static str, x: f32) -> Result<()> {
    require(x >= 0.0 && x.is_finite(), setting, "finite and not negative", x)
}

/// Refuses a number outside `[0, 1)`.
pub(crate) fn fraction(setting: &'static str, x: f32) -> Result<()> {
    require((0.0..1.0).contains(&x), setting, "in [0, 1)", x)
}
