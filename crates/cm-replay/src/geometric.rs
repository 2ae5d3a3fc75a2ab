//! The truncated geometric distribution: how far ahead of a step its goal lies.

use crate::{Error, Result};

/// Offsets `1..=horizon` with probability proportional to `gamma^offset`:
/// `P(k) = gamma^(k-1) (1 - gamma) / (1 - gamma^horizon)`.
///
/// Drawn by inversion from one 64-bit word, without rejection and at the same cost for any horizon.
/// With `u` uniform in `[0, 1)` the offset is
/// `1 + floor(ln(1 - u (1 - gamma^horizon)) / ln gamma)`; `ln_1p` and `exp_m1` keep it exact to the
/// resolution of `u`, 2^-53, also where `gamma^horizon` or `1 - gamma` is tiny.
///
/// ```
/// use cm_replay::TruncatedGeometric;
///
/// let offsets = TruncatedGeometric::new(0.5, 3)?;
/// assert_eq!(offsets.probability(1), 4.0 / 7.0);
/// let [low, high, ..] = cm_random::Philox::new(0).block(0, 0, 0).map(u64::from);
/// let u = cm_random::unit_f64(high << 32 | low);
/// assert!((1..=3).contains(&offsets.offset_at(u)));
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruncatedGeometric {
    discount: Discount,
    horizon: u64,
    /// `gamma^horizon - 1`.
    minus_mass: f64,
}

impl TruncatedGeometric {
    /// The distribution for `gamma` in `(0, 1)` and a `horizon` of at least 1.
    pub fn new(gamma: f64, horizon: u64) -> Result<Self> {
        if horizon == 0 {
            let found = "0".to_owned();
            return Err(Error::Parameter { name: "horizon", expected: "at least 1", found });
        }
        Ok(Discount::new(gamma)?.truncated_at(horizon))
    }

    /// The probability of `offset`; 0 outside `1..=horizon`.
    pub fn probability(&self, offset: u64) -> f64 {
        if !(1..=self.horizon).contains(&offset) {
            return 0.0;
        }
        let log = self.discount.log_gamma;
        ((offset - 1) as f64 * log).exp() * log.exp_m1() / self.minus_mass
    }

    /// The offset at which the cumulative distribution first exceeds `u` in `[0, 1)`.
    ///
    /// ```
    /// let offsets = cm_replay::TruncatedGeometric::new(0.5, 3)?;
    /// // Cumulative: 4/7, 6/7, 1.
    /// assert_eq!([0.0, 0.57, 0.58, 0.85, 0.86].map(|u| offsets.offset_at(u)), [1, 1, 2, 2, 3]);
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    #[inline]
    pub fn offset_at(&self, u: f64) -> u64 {
        let passed = (u * self.minus_mass).ln_1p() * self.discount.inverse_log_gamma;
        // The cast truncates, and saturates far above any horizon; rounding can reach the horizon
        // itself.
        (passed as u64).saturating_add(1).min(self.horizon)
    }
}

/// A checked `gamma`, from which the distribution for any horizon is a few operations away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Discount {
    log_gamma: f64,
    inverse_log_gamma: f64,
}

impl Discount {
    pub(crate) fn new(gamma: f64) -> Result<Self> {
        if !(gamma > 0.0 && gamma < 1.0) {
            let found = gamma.to_string();
            return Err(Error::Parameter { name: "gamma", expected: "between 0 and 1", found });
        }
        let log_gamma = gamma.ln();
        Ok(Self { log_gamma, inverse_log_gamma: log_gamma.recip() })
    }

    /// Offsets `1..=horizon`, for a `horizon` of at least 1.
    pub(crate) fn truncated_at(self, horizon: u64) -> TruncatedGeometric {
        TruncatedGeometric { discount: self, horizon, minus_mass: -self.cumulative(horizon) }
    }

    /// The weight of offsets up to `offset` without truncation, `1 - gamma^offset`.
    pub(crate) fn cumulative(self, offset: u64) -> f64 {
        -(offset as f64 * self.log_gamma).exp_m1()
    }
}
