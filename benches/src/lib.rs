//! What the benchmarks share: inputs, baselines, and ratios measured in one run.

pub mod bare_mujoco;
pub mod baseline;
pub mod cmd1_dfdx;
pub mod heads;
pub mod info_nce;
pub mod processes;
pub mod python;
mod ratio;
pub mod steps;

pub use ratio::{best_of, compare};

/// `length` numbers in [-1, 1), the same at every run.
///
/// ```
/// assert_eq!(cm_benches::numbers(1, 3), cm_benches::numbers(1, 3));
/// ```
pub fn numbers(seed: u64, length: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect()
}
