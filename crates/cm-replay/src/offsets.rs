//! Geometric offsets for many horizons under one discount, at the cost of a table look-up.

use crate::geometric::Discount;

/// Draws what [`crate::TruncatedGeometric`] draws, for every horizon up to a largest one. The
/// cumulative distribution `F(k) = 1 - gamma^k` is tabulated once; a draw takes `x = u F(horizon)`
/// and finds the first `k` with `F(k) > x`.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    discount: Discount,
    /// `F(1), F(2), ...` up to the largest horizon or to the first that rounds to 1, then an
    /// infinity; empty where that would be too many.
    cumulative: Vec<f64>,
    /// Entry `b` is how many of `cumulative` are at most `b / BUCKETS`.
    guide: Vec<u16>,
}

/// As many as keep the tables within the first-level cache, beside the data that passes through.
const BUCKETS: usize = 2048;
/// Larger tables would not stay in the cache, nor their places in 16 bits; the closed form serves
/// instead.
const LARGEST_TABLE: u64 = 1 << 15;

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
        if !cumulative.is_empty() {
            cumulative.push(f64::INFINITY);
        }
        let guide = (0..=BUCKETS)
            .map(|bucket| {
                let edge = bucket as f64 / BUCKETS as f64;
                cumulative.partition_point(|&value| value <= edge) as u16
            })
            .collect();
        Self { discount, cumulative, guide }
    }

    /// The offset in `1..=horizon` at which the distribution truncated there first exceeds `u` in
    /// `[0, 1)`, for each of many.
    #[inline(always)]
    pub(crate) fn truncated<const N: usize>(&self, horizons: &[u64; N], u: &[f64; N]) -> [u64; N] {
        let mut offsets = [0; N];
        let Some(largest) = self.cumulative.len().checked_sub(2) else {
            for at in 0..N {
                offsets[at] = self.discount.truncated_at(horizons[at]).offset_at(u[at]);
            }
            return offsets;
        };
        let mut x = [0.0; N];
        for at in 0..N {
            x[at] = u[at] * self.cumulative[(horizons[at] as usize - 1).min(largest)];
        }
        self.first_above(&x, &mut offsets);
        limit(&mut offsets, horizons);
        offsets
    }

    /// The same without truncation, except that offsets beyond the horizon become the horizon.
    #[inline(always)]
    pub(crate) fn clipped<const N: usize>(&self, horizons: &[u64; N], u: &[f64; N]) -> [u64; N] {
        let mut offsets = [0; N];
        if self.cumulative.is_empty() {
            let untruncated = self.discount.truncated_at(u64::MAX);
            for at in 0..N {
                offsets[at] = untruncated.offset_at(u[at]);
            }
        } else {
            self.first_above(u, &mut offsets);
        }
        limit(&mut offsets, horizons);
        offsets
    }

    /// The smallest `k` with `F(k) > x`, for each `x` in `[0, 1)`; one more than the table has if
    /// none is.
    #[inline(always)]
    fn first_above<const N: usize>(&self, x: &[f64; N], first: &mut [u64; N]) {
        let mut buckets = [0; N];
        for at in 0..N {
            // SAFETY: at least 0 and below BUCKETS, since every x is in [0, 1). Checked casts are
            // not vectorised.
            buckets[at] = unsafe { (x[at] * BUCKETS as f64).to_int_unchecked::<i32>() };
        }
        for at in 0..N {
            let (x, bucket) = (x[at], buckets[at] as usize);
            let low = self.guide[bucket] as usize;
            // Mostly this one or the next; the sum needs no branch, which would often be
            // mispredicted.
            let mut below = low + usize::from(self.cumulative[low] <= x);
            if self.cumulative[below] <= x {
                let high = self.guide[bucket + 1] as usize;
                below += self.cumulative[below..high].partition_point(|&value| value <= x);
            }
            first[at] = below as u64 + 1;
        }
    }
}

#[inline(always)]
fn limit<const N: usize>(offsets: &mut [u64; N], horizons: &[u64; N]) {
    for (offset, &horizon) in offsets.iter_mut().zip(horizons) {
        *offset = horizon.min(*offset);
    }
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, unit_f64};
    use rand_core::Rng;

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
                    let found = offsets.truncated(&[horizon], &[u])[0];
                    let near = [u - 1e-13, u + 1e-13].map(|u| exact.offset_at(u.clamp(0.0, 1.0)));
                    assert!((near[0]..=near[1]).contains(&found), "{gamma} {horizon} {u}: {found}");
                    let clipped = discount.truncated_at(u64::MAX).offset_at(u).min(horizon);
                    assert!(
                        offsets.clipped(&[horizon], &[u])[0].abs_diff(clipped)
                            <= u64::from(u > 0.999)
                    );
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
        assert_eq!(
            offsets.truncated(&[horizon], &[0.3])[0],
            discount.truncated_at(horizon).offset_at(0.3)
        );
        // Without truncation the offset would be about 1.2e9.
        assert_eq!(offsets.clipped(&[horizon], &[0.7]), [horizon]);
    }
}
