//! The innermost loops: a few rows of `x` against one panel of rows of `y`, all in registers.

use std::ops::Range;

use pulp::Simd;

use crate::Float;

/// Work on a few rows at a time.
pub(super) trait Tile<E: Float> {
    /// Rows `first..first + ROWS` against one panel, which holds what `range` says.
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        first: usize,
        range: &Range<usize>,
        panel: &[E::Vector<S>],
    );
}

/// Takes all `rows`: eight at a time where the register file has room for two registers of each
/// (AVX-512), four where it has not (AVX2).
#[inline(always)]
pub(super) fn walk<E: Float, S: Simd>(
    simd: S,
    rows: Range<usize>,
    work: &mut impl Tile<E>,
    range: &Range<usize>,
    panel: &[E::Vector<S>],
) {
    let mut row = rows.start;
    while S::REGISTER_COUNT >= 32 && row + 8 <= rows.end {
        work.tile::<S, 8>(simd, row, range, panel);
        row += 8;
    }
    while row + 4 <= rows.end {
        work.tile::<S, 4>(simd, row, range, panel);
        row += 4;
    }
    while row < rows.end {
        work.tile::<S, 1>(simd, row, range, panel);
        row += 1;
    }
}

/// `sum_i (x_i - y_i)^2` for each pair of the tile.
#[inline(always)]
pub(super) fn squares<E: Float, S: Simd, const ROWS: usize>(
    simd: S,
    x: [&[E]; ROWS],
    panel: &[E::Vector<S>],
) -> [E::Vector<S>; ROWS] {
    let x = x.map(|row| &row[..panel.len()]);
    let mut sums = [E::splat(simd, E::ZERO); ROWS];
    for (i, &y) in panel.iter().enumerate() {
        for row in 0..ROWS {
            let difference = E::minus(simd, E::splat(simd, x[row][i]), y);
            sums[row] = E::mul_add(simd, difference, difference, sums[row]);
        }
    }
    sums
}

/// `max_i relu(x_i - y_i)` for each pair of the tile.
#[inline(always)]
pub(super) fn maxima<E: Float, S: Simd, const ROWS: usize>(
    simd: S,
    x: [&[E]; ROWS],
    panel: &[E::Vector<S>],
) -> [E::Vector<S>; ROWS] {
    let x = x.map(|row| &row[..panel.len()]);
    let mut best = [E::splat(simd, E::ZERO); ROWS];
    for (i, &y) in panel.iter().enumerate() {
        for row in 0..ROWS {
            best[row] = E::larger(simd, E::minus(simd, E::splat(simd, x[row][i]), y), best[row]);
        }
    }
    best
}

/// `max_i relu(x_i - y_i)` for each pair of the tile, and the first feature that attains it in the
/// form of
/// [`from_index`](crate::float::Lanes::from_index); zero if no difference is positive.
#[inline(always)]
pub(super) fn argmaxima<E: Float, S: Simd, const ROWS: usize>(
    simd: S,
    x: [&[E]; ROWS],
    panel: &[E::Vector<S>],
) -> ([E::Vector<S>; ROWS], [E::Vector<S>; ROWS]) {
    let x = x.map(|row| &row[..panel.len()]);
    let mut best = [E::splat(simd, E::ZERO); ROWS];
    let mut arg = best;
    for (i, &y) in panel.iter().enumerate() {
        let index = E::splat(simd, E::from_index(i));
        for row in 0..ROWS {
            let difference = E::minus(simd, E::splat(simd, x[row][i]), y);
            let better = E::exceeds(simd, difference, best[row]);
            best[row] = E::larger(simd, difference, best[row]);
            arg[row] = E::select(simd, better, index, arg[row]);
        }
    }
    (best, arg)
}
