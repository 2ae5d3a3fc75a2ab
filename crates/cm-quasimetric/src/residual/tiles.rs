//! The innermost loops: a few rows of `x` against one panel of rows of `y`, all in registers.

use crate::Float;
use crate::float::{maximum, multiply_add};
use crate::simd::LANES;

/// Marks a pair none of whose asymmetric differences is positive.
pub(super) const NONE: u32 = u32::MAX;

/// `sum_i (x_i - y_i)^2` for each pair of the tile.
#[inline(always)]
pub(super) fn squares<E: Float, const FMA: bool, const ROWS: usize>(
    x: [&[E]; ROWS],
    panel: &[[E; LANES]],
) -> [[E; LANES]; ROWS] {
    let x = x.map(|row| &row[..panel.len()]);
    let mut sums = [[E::ZERO; LANES]; ROWS];
    for (i, y) in panel.iter().enumerate() {
        for row in 0..ROWS {
            for lane in 0..LANES {
                let difference = x[row][i] - y[lane];
                sums[row][lane] = multiply_add::<E, FMA>(difference, difference, sums[row][lane]);
            }
        }
    }
    sums
}

/// `max_i relu(x_i - y_i)` for each pair of the tile.
#[inline(always)]
pub(super) fn maxima<E: Float, const ROWS: usize>(
    x: [&[E]; ROWS],
    panel: &[[E; LANES]],
) -> [[E; LANES]; ROWS] {
    let x = x.map(|row| &row[..panel.len()]);
    let mut best = [[E::ZERO; LANES]; ROWS];
    for (i, y) in panel.iter().enumerate() {
        for row in 0..ROWS {
            for lane in 0..LANES {
                best[row][lane] = maximum(x[row][i] - y[lane], best[row][lane]);
            }
        }
    }
    best
}

/// The first feature that attains `max_i relu(x_i - y_i)` for each pair of the tile, or [`NONE`].
#[inline(always)]
pub(super) fn argmaxima<E: Float, const ROWS: usize>(
    x: [&[E]; ROWS],
    panel: &[[E; LANES]],
) -> [[u32; LANES]; ROWS] {
    let x = x.map(|row| &row[..panel.len()]);
    let mut best = [[E::ZERO; LANES]; ROWS];
    let mut arg = [[NONE; LANES]; ROWS];
    for (i, y) in panel.iter().enumerate() {
        for row in 0..ROWS {
            for lane in 0..LANES {
                let difference = x[row][i] - y[lane];
                let better = difference > best[row][lane];
                best[row][lane] = if better { difference } else { best[row][lane] };
                arg[row][lane] = if better { i as u32 } else { arg[row][lane] };
            }
        }
    }
    arg
}
