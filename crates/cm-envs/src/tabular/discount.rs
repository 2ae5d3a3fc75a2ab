//! The discount, checked once so that nothing deeper in has to.

use serde::{Deserialize, Serialize};

use crate::Error;

/// A discount gamma strictly between 0 and 1.
///
/// ```
/// use cm_envs::tabular::Discount;
///
/// let discount = Discount::new(0.9)?;
/// assert_eq!(discount.value(), 0.9);
/// assert_eq!(discount.step_length(), -(0.9_f64.ln()));
/// assert!(Discount::new(1.0).is_err() && Discount::new(f64::NAN).is_err());
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Discount(f64);

impl Discount {
    /// Accepts a number strictly between 0 and 1.
    pub fn new(discount: f64) -> Result<Self, Error> {
        if discount > 0.0 && discount < 1.0 {
            Ok(Self(discount))
        } else {
            Err(Error::Discount { found: discount })
        }
    }

    /// gamma.
    pub fn value(self) -> f64 {
        self.0
    }

    /// log(1/gamma), the successor distance of one certain step.
    pub fn step_length(self) -> f64 {
        -self.0.ln()
    }
}

impl TryFrom<f64> for Discount {
    type Error = Error;

    fn try_from(discount: f64) -> Result<Self, Error> {
        Self::new(discount)
    }
}

impl From<Discount> for f64 {
    fn from(discount: Discount) -> f64 {
        discount.value()
    }
}
