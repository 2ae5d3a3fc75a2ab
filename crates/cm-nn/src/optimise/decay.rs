//! Learning rates that fall.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::check::{Within, positive, share};

/// How a learning rate falls while an optimiser takes its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Decay {
    /// It stays as it is.
    #[default]
    None,
    /// Along half a period of the cosine (Loshchilov and Hutter 2017, without restarts).
    Cosine {
        /// After so many steps it has come to its end and stays there; at least 1.
        steps: u32,
        /// The share that is left then; from 0 to 1.
        to: f32,
    },
}

impl Decay {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        let Self::Cosine { steps, to } = *self else { return Ok(()) };
        positive("steps", steps).and_then(|()| share("to", to)).within("cosine")
    }

    /// What a learning rate is multiplied by once an optimiser has taken `taken` steps.
    ///
    /// ```
    /// use cm_nn::Decay;
    ///
    /// let decay = Decay::Cosine { steps: 100, to: 0.0 };
    /// assert_eq!(decay.factor(0.0), 1.0);
    /// assert!((decay.factor(50.0) - 0.5).abs() < 1e-12);
    /// assert_eq!([decay.factor(100.0), decay.factor(200.0)], [0.0; 2]);
    /// assert_eq!(Decay::None.factor(50.0), 1.0);
    /// ```
    pub fn factor(&self, taken: f64) -> f64 {
        let Self::Cosine { steps, to } = *self else { return 1.0 };
        let (done, to) = ((taken / f64::from(steps)).min(1.0), f64::from(to));
        to + (1.0 - to) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
    }
}
