//! Euclidean norms of differences that stay right where squaring overflows or underflows.

use crate::Float;
use crate::float::{maximum, multiply_add};
use crate::simd::LANES;

/// Whether a plain sum of squares can be trusted; otherwise [`careful_norm`] must be asked.
#[inline(always)]
pub(super) fn is_regular<E: Float>(square: E) -> bool {
    square >= E::SMALLEST_SQUARE && square.is_finite()
}

/// `sum (x - y)^2`.
#[inline(always)]
pub(super) fn squared_norm<E: Float, const FMA: bool>(x: &[E], y: &[E]) -> E {
    let mut sums = [E::ZERO; LANES];
    let (x_chunks, x_rest) = x.as_chunks::<LANES>();
    let (y_chunks, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            let difference = x[lane] - y[lane];
            sums[lane] = multiply_add::<E, FMA>(difference, difference, sums[lane]);
        }
    }
    for (lane, (&x, &y)) in x_rest.iter().zip(y_rest).enumerate() {
        sums[lane] = multiply_add::<E, FMA>(x - y, x - y, sums[lane]);
    }
    sums.into_iter().fold(E::ZERO, |total, sum| total + sum)
}

/// `|x - y|` where squares overflow or underflow; exactly 0 only for x = y.
///
/// Infinite only if the distance itself is beyond the largest number of the type.
#[cold]
#[inline(never)]
pub(super) fn careful_norm<E: Float>(x: &[E], y: &[E]) -> E {
    let Scaled { scale, half, norm } = scaled(x, y);
    if half { (norm * scale) + (norm * scale) } else { norm * scale }
}

/// Calls `visit(i, u_i)` for the unit vector `u = (x - y) / |x - y|`; never for x = y, whose
/// subgradient is taken as 0.
#[cold]
#[inline(never)]
pub(super) fn careful_unit<E: Float>(x: &[E], y: &[E], mut visit: impl FnMut(usize, E)) {
    let Scaled { scale, half, norm } = scaled(x, y);
    if norm > E::ZERO {
        for (i, (&x, &y)) in x.iter().zip(y).enumerate() {
            visit(i, difference(x, y, half) / scale / norm);
        }
    }
}

/// `|x - y| = norm * scale`, twice that if `half`; `scale` is the largest difference.
struct Scaled<E> {
    scale: E,
    half: bool,
    norm: E,
}

fn scaled<E: Float>(x: &[E], y: &[E]) -> Scaled<E> {
    let largest = |half| {
        x.iter().zip(y).fold(E::ZERO, |m, (&x, &y)| maximum(difference(x, y, half).abs(), m))
    };
    let full = largest(false);
    // Two finite numbers of opposite sign can differ by more than the largest number.
    let half = !full.is_finite();
    let scale = if half { largest(true) } else { full };
    if scale == E::ZERO {
        return Scaled { scale, half, norm: E::ZERO };
    }
    let square = x.iter().zip(y).fold(E::ZERO, |sum, (&x, &y)| {
        let ratio = difference(x, y, half) / scale;
        sum + ratio * ratio
    });
    Scaled { scale, half, norm: square.sqrt() }
}

fn difference<E: Float>(x: E, y: E, half: bool) -> E {
    if half {
        let factor = E::from_f64(0.5);
        x * factor - y * factor
    } else {
        x - y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn careful_norm_survives_every_magnitude() {
        for magnitude in [1e-45_f32, 1e-40, 1e-30, 1.0, 1e18, 1e30, 1e38] {
            let (x, y) = ([3.0 * magnitude, 0.0], [0.0, 4.0 * magnitude]);
            let expected = f64::from(x[0]).hypot(f64::from(y[1])) as f32;
            let found = careful_norm(&x, &y);
            assert!((found - expected).abs() <= expected * 1e-6, "{found} {expected}");
        }
        assert_eq!(careful_norm(&[f32::MAX, 1.0], &[f32::MAX, 1.0]), 0.0);
        assert_eq!(careful_norm(&[f32::MAX], &[-f32::MAX]), f32::INFINITY);
    }

    #[test]
    fn careful_unit_has_length_one_even_where_the_norm_overflows() {
        for (x, y) in [([f32::MAX, f32::MAX], [f32::MIN, 0.0]), ([1e-45, 0.0], [0.0, 3e-45])] {
            let mut square = 0.0;
            careful_unit(&x, &y, |_, u| square += f64::from(u) * f64::from(u));
            assert!((square - 1.0).abs() < 1e-6, "{square}");
        }
        careful_unit(&[1.0_f32], &[1.0], |_, _| panic!("no direction between equal points"));
    }
}
