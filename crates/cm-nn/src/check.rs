//! Ranges of settings.
//!
//! A settings type has a `check` that names its own keys; whoever holds it as a field adds that
//! field's key with [`Within`], so that an error names the whole path.
//!
//! ```
//! use cm_nn::check::{Within, positive};
//!
//! let refused = positive("epsilon", -1.0).within("adam").within("actor").unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "setting `actor.adam.epsilon` must be positive and finite, found -1"
//! );
//! ```

use std::fmt::Display;

use crate::{Error, Result};

/// Refuses a setting unless `holds`.
pub fn require(
    holds: bool,
    setting: &str,
    expected: &'static str,
    found: impl Display,
) -> Result<()> {
    match holds {
        true => Ok(()),
        false => {
            let (setting, found) = (setting.to_owned(), found.to_string());
            Err(Error::Setting { setting, expected, found })
        }
    }
}

/// Refuses a number that is not positive and finite.
pub fn positive(setting: &str, x: impl Number) -> Result<()> {
    let number = x.into();
    require(number > 0.0 && number.is_finite(), setting, "positive and finite", x)
}

/// Refuses a number that is negative or not finite.
pub fn not_negative(setting: &str, x: impl Number) -> Result<()> {
    let number = x.into();
    require(number >= 0.0 && number.is_finite(), setting, "finite and not negative", x)
}

/// Refuses a number that is not finite.
pub fn finite(setting: &str, x: impl Number) -> Result<()> {
    require(x.into().is_finite(), setting, "finite", x)
}

/// Refuses a number outside `[0, 1)`.
pub fn fraction(setting: &str, x: impl Number) -> Result<()> {
    require((0.0..1.0).contains(&x.into()), setting, "in [0, 1)", x)
}

/// Refuses a number outside `[0, 1]`.
pub fn share(setting: &str, x: impl Number) -> Result<()> {
    require((0.0..=1.0).contains(&x.into()), setting, "in [0, 1]", x)
}

/// What the checks take: `f32`, `f64` and small integers.
pub trait Number: Copy + Display + Into<f64> {}

impl<T: Copy + Display + Into<f64>> Number for T {}

/// Names the table that a refused setting is in.
pub trait Within {
    /// `key.setting` where the error says `setting`; everything else as it is.
    fn within(self, key: &str) -> Self;
}

impl Within for Error {
    fn within(self, key: &str) -> Self {
        match self {
            Self::Setting { setting, expected, found } => {
                Self::Setting { setting: format!("{key}.{setting}"), expected, found }
            }
            other => other,
        }
    }
}

impl<T> Within for Result<T> {
    fn within(self, key: &str) -> Self {
        self.map_err(|error| error.within(key))
    }
}
