//! Elementary functions without branches or calls, so that loops over them become vector
//! instructions.

use std::f32::consts::LOG2_E;

/// `exp(x)`, within two units in the last place; infinity above 88.8, 0 below -104, NaN for NaN.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Adding and subtracting it rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    /// The upper bits of ln 2, so that `n * LN_2_HIGH` is exact for every exponent `n`.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-105.0, 89.5);
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's series; |r| <= ln 2 / 2, so the first term left out is below 2^-24 / 40.
    let tail =
        1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0))));
    let p = 1.0 + (r + r * r * (0.5 + r * tail));
    // 2^n in two factors, since n may lie outside the exponents of normal numbers. A cast of n
    // would be checked, number by number; the whole number is also what the shifted one's lowest
    // bits have more than ROUND's (anything for a NaN, but p is NaN then).
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n - half)
}

/// `x`, or 0 if it is closer to 0 than 1e-30.
///
/// Gradients that pass through saturated units shrink through the subnormal numbers on their way to
/// 0, and processors work on those many times more slowly than on others: without this, late in
/// contrastive learning, they take half of the time.
#[inline(always)]
pub(super) fn without_tiny(x: f32) -> f32 {
    if x.abs() < 1e-30 { 0.0 } else { x }
}

/// `exp(x)` of a softmax or of a sum of exponentials whose largest is 1: 0 below -40, where it is
/// less than 1e-17 and no `f32` sum of such terms can tell.
///
/// Logits that far apart are common late in contrastive learning; their exponentials, too, would
/// lead to subnormal numbers.
#[inline(always)]
pub(super) fn softmax_exp(x: f32) -> f32 {
    if x < -40.0 { 0.0 } else { exp(x) }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// `ln(1 + e)` for `e` in `[0, 1]`: `2 artanh(s)` with `s = e / (2 + e) <= 1/3`.
#[inline(always)]
fn log1p_unit(e: f32) -> f32 {
    let s = e / (2.0 + e);
    let q = s * s;
    let tail = 1.0 / 7.0 + q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0))));
    2.0 * (s + s * q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * tail)))
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// What SiLU multiplies its input by: the sigmoid, or 0 below -60, where the product is closer to 0
/// than 1e-24.
#[inline(always)]
pub(super) fn silu_gate(x: f32) -> f32 {
    if x < -60.0 { 0.0 } else { sigmoid(x) }
}

/// `ln(1 + exp(x))`.
#[inline(always)]
pub(super) fn softplus(x: f32) -> f32 {
    // `f32::max` would lose a NaN.
    let positive = if x > 0.0 { x } else { x * 0.0 };
    let tail = log1p_unit(exp(-x.abs()));
    if x.is_infinite() { x.max(0.0) } else { positive + tail }
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let q = x * x;
    // Taylor's series below 0.35, where `1 - 2 / (exp(2 |x|) + 1)` loses digits.
    let series = 2.0 / 15.0 + q * (-17.0 / 315.0 + q * (62.0 / 2835.0 + q * (-1382.0 / 155_925.0)));
    let small = x + x * q * (-1.0 / 3.0 + q * series);
    let large = 1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0);
    if x.abs() < 0.35 { small } else { large.copysign(x) }
}

/// `ln P(N(0, 1) < x)` and its derivative, right also where the probability is tiny.
pub(super) fn log_normal_cdf(x: f64) -> (f64, f64) {
    const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_8;
    let log_density = -0.5 * x * x - LN_SQRT_TWO_PI;
    let log_cdf = if x > 0.0 {
        (-upper_tail_ratio(x) * log_density.exp()).ln_1p()
    } else {
        upper_tail_ratio(-x).ln() + log_density
    };
    (log_cdf, (log_density - log_cdf).exp())
}

/// Mills' ratio `P(N(0, 1) > x) / density(x)` for `x >= 0`.
fn upper_tail_ratio(x: f64) -> f64 {
    if x < 2.5 {
        // P(0 < N < x) / density(x) = x + x^3/3 + x^5/(3 5) + ...
        let (mut term, mut sum, mut odd) = (x, x, 3.0);
        while term > sum * 1e-17 {
            term *= x * x / odd;
            sum += term;
            odd += 2.0;
        }
        let half_over_density = (0.5 * x * x).exp() * (std::f64::consts::PI / 2.0).sqrt();
        half_over_density - sum
    } else {
        // Laplace's continued fraction 1 / (x + 1 / (x + 2 / (x + 3 / ...))), from the inside out.
        let inner = (1..=120).rev().fold(x, |tail, k| x + f64::from(k) / tail);
        1.0 / inner
    }
}

/// The inverse of the hyperbolic tangent, for `|x| < 1`.
pub(super) fn artanh(x: f64) -> f64 {
    0.5 * ((1.0 + x) / (1.0 - x)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative error against the standard library in double precision, over a sweep.
    fn worst(from: f32, to: f32, f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> f64 {
        let points = (0..=200_000).map(|i| from + (to - from) * i as f32 / 200_000.0);
        let errors = points.map(|x| {
            let exact = exact(f64::from(x));
            ((f64::from(f(x)) - exact) / exact.abs().max(1e-37)).abs()
        });
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_accurate() {
        assert!(worst(-87.0, 88.7, exp, f64::exp) < 2.4e-7);
        assert!(worst(-80.0, 80.0, sigmoid, |x| 1.0 / (1.0 + (-x).exp())) < 4e-7);
        let softplus_exact = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        assert!(worst(-80.0, 80.0, softplus, softplus_exact) < 4e-7);
        assert!(worst(0.0001, 12.0, tanh, f64::tanh) < 4e-7);
        assert!(worst(-12.0, -0.0001, tanh, f64::tanh) < 4e-7);
    }

    #[test]
    fn functions_are_right_at_the_ends() {
        assert_eq!([exp(0.0), exp(f32::NEG_INFINITY), exp(-200.0)], [1.0, 0.0, 0.0]);
        assert_eq!([exp(f32::INFINITY), exp(100.0)], [f32::INFINITY; 2]);
        // The smallest subnormal number is exp(-103.28).
        assert!(exp(-100.0) > 0.0);
        assert_eq!([tanh(0.0), tanh(f32::INFINITY), tanh(-1e30)], [0.0, 1.0, -1.0]);
        assert_eq!([softplus(1e30), softplus(f32::NEG_INFINITY)], [1e30, 0.0]);
        assert_eq!([softplus(f32::INFINITY), sigmoid(-1e30)], [f32::INFINITY, 0.0]);
        for f in [exp, tanh, softplus, sigmoid] {
            assert!(f(f32::NAN).is_nan());
        }
    }

    #[test]
    fn softmax_terms_are_exponentials_or_nothing() {
        assert_eq!(softmax_exp(-39.0), exp(-39.0));
        assert_eq!([softmax_exp(-41.0), softmax_exp(f32::NEG_INFINITY)], [0.0; 2]);
        assert_eq!(softmax_exp(0.0), 1.0);
        assert!(softmax_exp(f32::NAN).is_nan());
    }

    #[test]
    fn tiny_numbers_are_nothing() {
        assert_eq!([1e-29, -1e-29, 0.0].map(without_tiny), [1e-29, -1e-29, 0.0]);
        assert_eq!([1e-31, -1e-31, 1e-40].map(without_tiny), [0.0; 3]);
        assert!(without_tiny(f32::NAN).is_nan());
        assert_eq!(silu_gate(-59.0), sigmoid(-59.0));
        assert_eq!(silu_gate(-61.0), 0.0);
        assert!(silu_gate(f32::NAN).is_nan());
    }

    #[test]
    fn normal_tail_matches_tabulated_values() {
        // Values of ln Phi(x) from tables of the normal distribution.
        let table = [
            (0.0, -std::f64::consts::LN_2),
            (1.0, -0.172_753_779_023_449_9),
            (-1.0, -1.841_021_645_009_263_7),
            (-2.0, -3.783_184_333_682_031),
            (-5.0, -15.064_998_393_988_725),
            (-10.0, -53.231_285_150_512_47),
            (-40.0, -804.608_442_013_753_8),
            (3.0, -0.001_350_809_964_748_202_7),
        ];
        for (x, exact) in table {
            let (log_cdf, _) = log_normal_cdf(x);
            assert!((log_cdf / exact - 1.0).abs() < 1e-11, "{x}: {log_cdf} {exact}");
        }
        for x in [-30.0, -7.5, -2.51, -2.49, -0.3, 0.0, 0.4, 2.49, 2.51, 6.0] {
            let step = 1e-5;
            let numeric = (log_normal_cdf(x + step).0 - log_normal_cdf(x - step).0) / (2.0 * step);
            let (_, slope) = log_normal_cdf(x);
            assert!((numeric - slope).abs() < 1e-6 * (1.0 + slope), "{x}: {numeric} {slope}");
        }
    }
}
