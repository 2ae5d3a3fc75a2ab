//! What the benchmarks share: inputs, baselines, and ratios measured in one run.

pub mod bare_mujoco;
pub mod baseline;
pub mod cmd1_dfdx;
pub mod device;
pub mod heads;
pub mod info_nce;
pub mod processes;
pub mod python;
mod ratio;
pub mod steps;

pub use ratio::{best_of, compare};

use cm_random::{Philox, unit_f32};
use rand_core::Rng;

/// The stream of [`numbers`].
const NUMBERS: u32 = 0x300;

/// `length` numbers in [-1, 1), the same at every run.
///
/// ```
/// assert_eq!(cm_benches::numbers(1, 3), cm_benches::numbers(1, 3));
/// ```
pub fn numbers(seed: u64, length: usize) -> Vec<f32> {
    let mut stream = Philox::new(seed).stream(0, NUMBERS);
    (0..length).map(|_| 2.0 * unit_f32(stream.next_u32()) - 1.0).collect()
}
