//! Box-Muller: two independent standard normal numbers from two words.
//!
//! Library logarithms, sines and cosines differ in the last bits from one platform or device to
//! another. These are short series of single IEEE-754 operations instead, so the pair is the same
//! bit for bit everywhere, and a compiler can vectorise the loop around it.

use std::f32::consts::{FRAC_PI_4, LN_2};

use crate::positive_unit_f32;

/// Two independent standard normal numbers: `sqrt(-2 ln r) (cos a, sin a)` with `r` in `(0, 1]`
/// from `radius_word` ([`positive_unit_f32`]) and `a` uniform on the circle from `angle_word`.
///
/// The angle's upper two bits choose the quarter turn, its next 22 bits the midpoint of one of 2^22
/// equal parts of `[-pi/4, pi/4)`. Relative to exact arithmetic on the same `r` and `a` the error
/// is a few units in the last place; the largest magnitude is `sqrt(48 ln 2)`, about 5.77.
///
/// ```
/// let words = cm_random::Philox::new(0).block(0, 0, 0);
/// let (x, y) = cm_random::normal_pair(words[0], words[1]);
/// assert!(x.abs() < 5.78 && y.abs() < 5.78);
/// ```
#[inline(always)]
pub fn normal_pair(radius_word: u32, angle_word: u32) -> (f32, f32) {
    let radius = (-2.0 * natural_log(positive_unit_f32(radius_word))).sqrt();
    let (cosine, sine) = circle_point(angle_word);
    (radius * cosine, radius * sine)
}

/// `ln u` for a normal, positive `u`: `u = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, and
/// `ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...)` with `s = (m - 1) / (m + 1)`.
#[inline(always)]
fn natural_log(u: f32) -> f32 {
    const BITS_OF_SQRT_HALF: u32 = 0x3f35_04f3;
    const MANTISSA: u32 = 0x007f_ffff;
    let shifted = u.to_bits().wrapping_sub(BITS_OF_SQRT_HALF);
    let exponent = (shifted as i32 >> 23) as f32;
    let m = f32::from_bits((shifted & MANTISSA) + BITS_OF_SQRT_HALF);
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    // |s| < 0.172, so the first term left out is below 2^-27 of the sum.
    let tail = q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0))));
    exponent * LN_2 + 2.0 * (s + s * tail)
}

/// `(cos a, sin a)` of the angle that `word` stands for.
#[inline(always)]
fn circle_point(word: u32) -> (f32, f32) {
    let part = (word >> 8) & 0x003f_ffff;
    let odd = (2 * part + 1) as i32 - (1 << 22);
    let x = odd as f32 * (FRAC_PI_4 / (1 << 22) as f32);
    let q = x * x;
    // Taylor series on |x| <= pi/4; the first terms left out are below 2^-27 of the sums.
    let sine =
        x - x * q * (1.0 / 6.0 - q * (1.0 / 120.0 - q * (1.0 / 5040.0 - q * (1.0 / 362_880.0))));
    let cosine = 1.0
        - q * (0.5
            - q * (1.0 / 24.0
                - q * (1.0 / 720.0 - q * (1.0 / 40_320.0 - q * (1.0 / 3_628_800.0)))));
    // Quarter turns without a branch, which would keep loops from being vectorised.
    let (x, y) = if word >> 30 & 1 == 1 { (-sine, cosine) } else { (cosine, sine) };
    let sign = if word >> 31 == 1 { -1.0 } else { 1.0 };
    (sign * x, sign * y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Philox;

    /// The same pair in double precision with the standard library's functions.
    fn reference(radius_word: u32, angle_word: u32) -> (f64, f64) {
        let r = f64::from((radius_word >> 8) + 1) / 16_777_216.0;
        let part = f64::from((angle_word >> 8) & 0x003f_ffff) + 0.5;
        let quarter = f64::from(angle_word >> 30) - 0.5 + part / 4_194_304.0;
        let angle = quarter * std::f64::consts::FRAC_PI_2;
        let radius = (-2.0 * r.ln()).sqrt();
        (radius * angle.cos(), radius * angle.sin())
    }

    #[test]
    fn is_accurate_over_the_whole_range() {
        let corners = [0, 255, 256, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0xb504_f300, u32::MAX];
        let pairs = corners.iter().flat_map(|&a| corners.map(|b| (a, b)));
        let random = (0..200_000).map(|index| {
            let words = Philox::new(5).block(0, 0, index);
            (words[0], words[1])
        });
        for (a, b) in pairs.chain(random) {
            let (x, y) = normal_pair(a, b);
            let (exact_x, exact_y) = reference(a, b);
            let tolerance = 4e-7 * exact_x.hypot(exact_y);
            assert!((f64::from(x) - exact_x).abs() <= tolerance, "{a:#x} {b:#x}: {x} {exact_x}");
            assert!((f64::from(y) - exact_y).abs() <= tolerance, "{a:#x} {b:#x}: {y} {exact_y}");
        }
    }

    /// Bits that a kernel on another device is held to; NumPy's float32 arithmetic gives the same
    /// ones.
    #[test]
    fn gives_these_bits() {
        let bits = |(x, y): (f32, f32)| (x.to_bits(), y.to_bits());
        let words = Philox::new(0).block(0, 0, 0);
        assert_eq!(bits(normal_pair(words[0], words[1])), (0x3d40_8846, 0xbfad_6600));
        assert_eq!(bits(normal_pair(words[2], words[3])), (0xbf47_1018, 0x3dc4_489a));
    }
}
