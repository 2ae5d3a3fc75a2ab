//! Euclidean norms of differences that stay right where squaring overflows or underflows.

use pulp::Simd;

use super::{Split, tiles};
use crate::Float;
use crate::panels::MOST_LANES;

/// Whether a plain sum of squares can be trusted; otherwise [`careful_norm`] must be asked.
#[inline(always)]
pub(super) fn is_regular<E: Float>(square: E) -> bool {
    square >= E::SMALLEST_SQUARE && square.is_finite()
}

/// Euclidean distances for each pair of a tile: rows `x` against the `count` rows `y(lane)` that
/// `panel` holds.
#[inline(always)]
pub(super) fn norms<'a, E: Float, S: Simd, const ROWS: usize>(
    simd: S,
    split: Split,
    x: [&[E]; ROWS],
    y: impl Fn(usize) -> &'a [E],
    count: usize,
    panel: &[E::Vector<S>],
) -> [E::Vector<S>; ROWS] {
    let mut norms = tiles::squares::<E, S, ROWS>(simd, x, panel);
    let offset = E::splat(simd, E::from_f64(split.offset()));
    let mut bad = E::splat(simd, E::ZERO);
    for norm in &mut norms {
        *norm = E::plus(simd, *norm, offset);
        bad = E::larger(simd, bad, irregular::<E, S>(simd, *norm));
    }
    if E::largest(simd, bad) > E::ZERO {
        for (x, norm) in x.iter().zip(&mut norms) {
            let mut squares = [E::ZERO; MOST_LANES];
            E::store(simd, &mut squares, *norm);
            let mut roots = squares.map(E::sqrt);
            for lane in (0..count).filter(|&lane| !is_regular(squares[lane])) {
                roots[lane] = careful_norm(x, y(lane));
            }
            *norm = E::load(simd, &roots);
        }
        return norms;
    }
    norms.map(
        #[inline(always)]
        |square| E::root(simd, square),
    )
}

/// 1 in every lane of a register of squares that is not regular, else 0.
#[inline(always)]
pub(super) fn irregular<E: Float, S: Simd>(simd: S, squares: E::Vector<S>) -> E::Vector<S> {
    let (zero, one) = (E::splat(simd, E::ZERO), E::splat(simd, E::from_f64(1.0)));
    let small = E::exceeds(simd, E::splat(simd, E::SMALLEST_SQUARE), squares);
    let large = E::exceeds(simd, squares, E::splat(simd, E::MAX));
    E::select(simd, small, one, E::select(simd, large, one, zero))
}

/// `sum (x - y)^2`.
#[inline(always)]
pub(super) fn squared_norm<E: Float, S: Simd>(simd: S, x: &[E], y: &[E]) -> E {
    let ((x, x_rest), (y, y_rest)) = (E::as_vectors::<S>(x), E::as_vectors::<S>(y));
    let mut sums = E::splat(simd, E::ZERO);
    for (&x, &y) in x.iter().zip(y) {
        let difference = E::minus(simd, x, y);
        sums = E::mul_add(simd, difference, difference, sums);
    }
    let rest = E::minus(simd, E::load(simd, x_rest), E::load(simd, y_rest));
    E::sum(simd, E::mul_add(simd, rest, rest, sums))
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

/// Whether two finite features of opposite sign differ by more than the largest number.
pub(super) fn differs_beyond_measure<E: Float>(x: &[E], y: &[E]) -> bool {
    x.iter().zip(y).any(|(&x, &y)| !(x - y).is_finite() && x.is_finite() && y.is_finite())
}

/// `|x - y| = norm * scale`, twice that if `half`; `scale` is the largest difference.
struct Scaled<E> {
    scale: E,
    half: bool,
    norm: E,
}

fn scaled<E: Float>(x: &[E], y: &[E]) -> Scaled<E> {
    let largest = |half| {
        x.iter().zip(y).fold(E::ZERO, |largest, (&x, &y)| {
            let size = difference(x, y, half).abs();
            if size > largest { size } else { largest }
        })
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
        for magnitude in [1e-45_f32, 1e-40, 1e-30, 1.0, 1e18, 1e30, 5e37] {
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
