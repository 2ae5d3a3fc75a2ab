//! Geometric offsets for many horizons under one discount, at the cost of a table look-up.

use crate::geometric::Discount;

/// Draws what [`crate::TruncatedGeometric`] draws, for every horizon up to a largest one. The cumulative distribution
/// `F(k) = 1 - gamma^k` is tabulated once; a draw takes `x = u F(horizon)` and finds the first `k` with `F(k) > x`.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    discount: Discount,
    /// `F(1), F(2), ...` up to the largest horizon or to the first that rounds to 1; empty where that would be too many.
    cumulative: Vec<f64>,
    /// Entry `b` is how many of `cumulative` are at most `b / BUCKETS`.
    guide: Vec<u32>,
}

const BUCKETS: usize = 4096;
/// Larger tables would not stay in the cache; the closed form serves instead.
const LARGEST_TABLE: u64 = 1 << 16;

impl Offsets {
    pub(crate) fn new(discount: Discount, largest_horizon: u64) -> Self {
        let mut cumulative = Vec::new();
        for horizon in 1..=largest_horizon {
            if cumulative.last() == Some(&1.0) {
                break;
            }
            if horizon > LARGEST_TABLE {
                cumulative.clear();
                break;
            }
            cumulative.push(discount.cumulative(horizon));
        }
        let guide = (0..=BUCKETS)
            .map(|bucket| {
                let edge = bucket as f64 / BUCKETS as f64;
                cumulative.partition_point(|&value| value <= edge) as u32
            })
            .collect();
        Self { discount, cumulative, guide }
    }

    /// The offset in `1..=horizon` at which the distribution truncated there first exceeds `u` in `[0, 1)`.
    #[inline]
    pub(crate) fn truncated(&self, horizon: u64, u: f64) -> u64 {
        let Some(largest) = self.cumulative.last() else {
            return self.discount.truncated_at(horizon).offset_at(u);
        };
        let mass = self.cumulative.get(horizon as usize - 1).unwrap_or(largest);
        self.first_above(u * mass).min(horizon)
    }

    /// The same without truncation, except that offsets beyond `horizon` become `horizon`.
    #[inline]
    pub(crate) fn clipped(&self, horizon: u64, u: f64) -> u64 {
        if self.cumulative.is_empty() {
            return self.discount.truncated_at(u64::MAX).offset_at(u).min(horizon);
        }
        self.first_above(u).min(horizon)
    }

    /// The smallest `k` with `F(k) > x`, for `x` in `[0, 1)`; one more than the table has if none is.
    #[inline]
    fn first_above(&self, x: f64) -> u64 {
        let bucket = (x * BUCKETS as f64) as usize;
        let (low, high) = (self.guide[bucket] as usize, self.guide[bucket + 1] as usize);
        let below = self.cumulative[low..high].partition_point(|&value| value <= x);
        (low + below + 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, unit_f64};
    use rand::Rng;

    use super::*;

    /// The table and the closed form may part only where `u` lies within rounding of a boundary.
    #[test]
    fn agrees_with_the_closed_form() {
        let mut stream = Philox::new(11).stream(0, 0);
        for (gamma, largest) in
            [(0.5, 40), (0.8, 200), (0.99, 1000), (0.99, 5000), (0.9999, 30_000)]
        {
            let discount = Discount::new(gamma).unwrap();
            let offsets = Offsets::new(discount, largest);
            assert!(!offsets.cumulative.is_empty());
            for _ in 0..20_000 {
                let (wide, u) = (stream.next_u64(), unit_f64(stream.next_u64()));
                for horizon in [1 + wide % largest, 1 + wide % 3, largest] {
                    let exact = discount.truncated_at(horizon);
                    let found = offsets.truncated(horizon, u);
                    let near = [u - 1e-13, u + 1e-13].map(|u| exact.offset_at(u.clamp(0.0, 1.0)));
                    assert!((near[0]..=near[1]).contains(&found), "{gamma} {horizon} {u}: {found}");
                    let clipped = discount.truncated_at(u64::MAX).offset_at(u).min(horizon);
                    assert!(offsets.clipped(horizon, u).abs_diff(clipped) <= u64::from(u > 0.999));
                }
            }
        }
    }

    #[test]
    fn falls_back_to_the_closed_form_for_huge_tables() {
        let discount = Discount::new(1.0 - 1e-9).unwrap();
        let offsets = Offsets::new(discount, 1 << 40);
        assert!(offsets.cumulative.is_empty());
        let horizon = 1_000_000_000;
        assert_eq!(offsets.truncated(horizon, 0.3), discount.truncated_at(horizon).offset_at(0.3));
        // Without truncation the offset would be about 1.2e9.
        assert_eq!(offsets.clipped(horizon, 0.7), horizon);
    }
}
