//! Words to uniform numbers, exactly: no rounding happens in any of these.

/// A multiple of 2^-24 in `[0, 1)` from the word's upper 24 bits.
///
/// ```
/// assert_eq!(cm_random::unit_f32(0x8000_0000), 0.5);
/// assert_eq!(cm_random::unit_f32(u32::MAX), 1.0 - 1.0 / 16_777_216.0);
/// ```
#[inline]
pub const fn unit_f32(word: u32) -> f32 {
    (word >> 8) as f32 * TWO_POW_MINUS_24
}

/// A multiple of 2^-24 in `(0, 1]` from the word's upper 24 bits, so that its logarithm is finite.
///
/// ```
/// assert_eq!(cm_random::positive_unit_f32(0), 1.0 / 16_777_216.0);
/// assert_eq!(cm_random::positive_unit_f32(u32::MAX), 1.0);
/// ```
#[inline]
pub const fn positive_unit_f32(word: u32) -> f32 {
    ((word >> 8) + 1) as f32 * TWO_POW_MINUS_24
}

/// A multiple of 2^-53 in `[0, 1)` from the upper 53 bits of a 64-bit word.
///
/// ```
/// assert_eq!(cm_random::unit_f64(1 << 62), 0.25);
/// assert_eq!(cm_random::unit_f64(u64::MAX), 1.0 - f64::EPSILON / 2.0);
/// ```
#[inline]
pub const fn unit_f64(word: u64) -> f64 {
    (word >> 11) as f64 * TWO_POW_MINUS_53
}

/// An integer below `bound`: the upper word of the product `word * bound` (`__umulhi` in CUDA).
///
/// Each value's probability is within 2^-32 of `1 / bound`; there is no rejection, so one word
/// always gives one number. A `bound` of 0 gives 0. Use [`below_u64`] where `bound` is so large
/// that 2^-32 matters beside `1 / bound`.
///
/// ```
/// assert_eq!(cm_random::below_u32(u32::MAX, 10), 9);
/// assert_eq!(cm_random::below_u32(1 << 31, 10), 5);
/// ```
#[inline]
pub const fn below_u32(word: u32, bound: u32) -> u32 {
    ((word as u64 * bound as u64) >> 32) as u32
}

/// An integer below `bound`: the upper half of the 128-bit product `word * bound` (`__umul64hi` in
/// CUDA).
///
/// Each value's probability is within 2^-64 of `1 / bound`, far below what any number of draws can
/// show. A `bound` of 0 gives 0.
///
/// ```
/// assert_eq!(cm_random::below_u64(u64::MAX, 1_000_000), 999_999);
/// ```
#[inline]
pub const fn below_u64(word: u64, bound: u64) -> u64 {
    ((word as u128 * bound as u128) >> 64) as u64
}

const TWO_POW_MINUS_24: f32 = 1.0 / (1_u32 << 24) as f32;
const TWO_POW_MINUS_53: f64 = 1.0 / (1_u64 << 53) as f64;
