//! Positive numbers with the precision of `f64` and an exponent that cannot underflow.
//!
//! The transform `E[gamma^H]` of a far goal is smaller than any `f64` (gamma = 0.9 over 10,000
//! steps is about 10^-458) while its logarithm, the distance, is an ordinary number. Sums and
//! products of non-negative numbers lose no relative precision, so this is all that exact distances
//! need.

use std::ops::{AddAssign, Mul};

/// `mantissa * 2^exponent`, with a mantissa in `[1, 2)`, or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wide {
    mantissa: f64,
    exponent: i64,
}

impl Wide {
    /// The exponent is far below any that arithmetic can reach, and far from overflow.
    pub(crate) const ZERO: Self = Self { mantissa: 0.0, exponent: -(1 << 60) };
    pub(crate) const ONE: Self = Self { mantissa: 1.0, exponent: 0 };

    /// Splits a finite non-negative number.
    pub(crate) fn new(value: f64) -> Self {
        Self { mantissa: value, exponent: 0 }.normalised()
    }

    pub(crate) fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// `-log` of it, the distance when it is `E[gamma^H]`: infinity of zero.
    pub(crate) fn distance(self) -> f64 {
        if self.is_zero() { f64::INFINITY } else { Self::ONE.log_ratio(self) }
    }

    /// The nearest `f64`: zero below its range, infinity above.
    pub(crate) fn to_f64(self) -> f64 {
        // Two factors, because one power of two cannot span the subnormal numbers.
        let exponent = self.exponent.clamp(-2200, 2046);
        self.mantissa * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2)
    }

    /// `self / other` for a positive `other`, as an `f64`.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        let mantissa = self.mantissa / other.mantissa;
        Self { mantissa, exponent: self.exponent - other.exponent }.to_f64()
    }

    /// `log(self / other)` of positive numbers, as precise near 0 as the numbers are.
    pub(crate) fn log_ratio(self, other: Self) -> f64 {
        let exponent = (self.exponent - other.exponent) as f64;
        (self.mantissa / other.mantissa).ln() + exponent * std::f64::consts::LN_2
    }

    /// `exp(power)` of a finite number.
    pub(crate) fn exp(power: f64) -> Self {
        let exponent = (power / std::f64::consts::LN_2).round();
        let mantissa = (power - exponent * std::f64::consts::LN_2).exp();
        Self { mantissa, exponent: exponent as i64 }.normalised()
    }

    #[inline]
    fn normalised(self) -> Self {
        if self.mantissa < f64::MIN_POSITIVE {
            return self.normalised_from_below();
        }
        let bits = self.mantissa.to_bits();
        let shift = (bits >> 52) as i64 - 1023;
        let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
        Self { mantissa, exponent: self.exponent + shift }
    }

    /// Zero, or a subnormal mantissa.
    #[cold]
    fn normalised_from_below(self) -> Self {
        if self.mantissa == 0.0 {
            return Self::ZERO;
        }
        let mantissa = self.mantissa * power_of_two(64);
        Self { mantissa, exponent: self.exponent - 64 }.normalised()
    }
}

impl Mul for Wide {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        let mantissa = self.mantissa * other.mantissa;
        Self { mantissa, exponent: self.exponent + other.exponent }.normalised()
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.exponent, self.mantissa).partial_cmp(&(other.exponent, other.mantissa))
    }
}

/// A sum of products in progress, normalised once at its end.
#[derive(Clone, Copy)]
pub(crate) struct Sum(Wide);

impl Sum {
    pub(crate) const ZERO: Self = Self(Wide::ZERO);

    #[inline]
    pub(crate) fn value(self) -> Wide {
        self.0.normalised()
    }
}

/// Adds `probability * value`.
impl AddAssign<(f64, Wide)> for Sum {
    #[inline]
    fn add_assign(&mut self, (probability, value): (f64, Wide)) {
        // Without branches: which of the two is larger cannot be foretold.
        let exponent = self.0.exponent.max(value.exponent);
        let sum = self.0.mantissa * power_of_two(self.0.exponent - exponent);
        let product = probability * value.mantissa * power_of_two(value.exponent - exponent);
        self.0 = Wide { mantissa: sum + product, exponent };
    }
}

/// `2^exponent` for an exponent up to 1023; zero below the normal range.
#[inline]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent.max(-1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_ordinary_numbers_exactly() {
        for value in [1.0, 0.1, 3.75, 1e-300, 1e300, f64::MIN_POSITIVE, 5e-324, 0.0] {
            assert_eq!(Wide::new(value).to_f64(), value);
        }
    }

    #[test]
    fn powers_far_below_f64_keep_their_logarithm() {
        let (mut power, mut sum) = (Wide::ONE, 0.0);
        for _ in 0..10_000 {
            power = power * Wide::new(1e-300);
            sum += 1e-300_f64.ln();
        }
        assert_eq!(power.to_f64(), 0.0);
        assert!((power.distance() / sum + 1.0).abs() < 1e-12);
        assert_eq!((power * power).ratio(power * power), 1.0);
    }

    #[test]
    fn sums_do_not_depend_on_the_order_of_magnitude() {
        let tiny = Wide::new(1e-200) * Wide::new(1e-200);
        let mut sum = Sum::ZERO;
        for _ in 0..3 {
            sum += (0.25, tiny);
        }
        assert_eq!(sum.value().ratio(tiny), 0.75);
        sum += (0.5, Wide::ONE);
        assert_eq!(sum.value().to_f64(), 0.5);
        let mut other_way = Sum::ZERO;
        other_way += (0.5, Wide::ONE);
        other_way += (0.75, tiny);
        assert_eq!(sum.value(), other_way.value());
        assert!(tiny < Wide::ONE && Wide::ZERO < tiny);
    }
}
