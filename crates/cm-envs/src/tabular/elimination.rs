//! `A X = B` for matrices `A = D - P` with `P` not negative and every row's sum known and positive.
//!
//! Elimination in the manner of Grassmann, Taksar and Heyman: a pivot is not what is left of the
//! diagonal but the sum of its row's other entries and of the row's excess, which is carried along.
//! Nothing is subtracted anywhere, so that every entry of the result is right to about the number
//! of states times `1e-16` of itself, however small it is and however near to singular `A`.

use rayon::prelude::*;

use super::product::{Block, BlockMut, add_product};

/// Rows that are eliminated before the others hear of it, all at once as a product of matrices.
const PANEL: usize = 64;

/// The factors of `A`: multipliers below the diagonal, and above it the entries of `P` when their
/// row was eliminated.
pub(super) struct Factors {
    states: usize,
    entries: Vec<f64>,
    pivots: Vec<f64>,
}

impl Factors {
    /// Of `A` with the entries `-entries[row * states + column]` off the diagonal and with rows
    /// that sum to `excess`. What `entries` has on the diagonal is not looked at.
    pub(super) fn new(states: usize, mut entries: Vec<f64>, excess: f64) -> Self {
        debug_assert_eq!(entries.len(), states * states);
        let mut pivots = vec![0.0; states];
        let mut excess = vec![excess; states];
        let mut multipliers = Vec::new();
        for first in (0..states).step_by(PANEL) {
            let last = (first + PANEL).min(states);
            let (above, below) = entries.split_at_mut(last * states);
            let panel = &mut above[first * states..];
            let (done, rest) = excess.split_at_mut(last);
            let excess = &mut done[first..];
            eliminate_panel(panel, states, first, excess, &mut pivots[first..last]);
            if below.is_empty() {
                break;
            }

            let width = last - first;
            let pivots = &pivots[first..last];
            multipliers.resize((states - last) * width, 0.0);
            let rows = below.par_chunks_mut(states).zip(multipliers.par_chunks_mut(width));
            rows.zip(rest).for_each(|((row, multipliers), rest)| {
                let row = &mut row[first..last];
                for k in 0..width {
                    row[k] /= pivots[k];
                    let (multiplier, upper) = (row[k], &panel[k * states + first..]);
                    for j in k + 1..width {
                        row[j] += multiplier * upper[j];
                    }
                    *rest += multiplier * excess[k];
                }
                multipliers.copy_from_slice(row);
            });
            let size = (states - last, states - last);
            add_product(
                BlockMut::new(below, states, (0, last), size),
                Block::new(&multipliers, width, (0, 0), (size.0, width)),
                Block::new(panel, states, (0, last), (width, size.1)),
                gemm::Parallelism::Rayon(0),
            );
        }
        Self { states, entries, pivots }
    }

    /// `X` for `count` columns of a diagonal `B` with the number `scale`, from column `first` on:
    /// `result[row * count + column]`.
    pub(super) fn solve(&self, first: usize, count: usize, scale: f64) -> Vec<f64> {
        let states = self.states;
        let mut solution = vec![0.0; states * count];
        (0..count).for_each(|column| solution[(first + column) * count + column] = scale);
        let panels: Vec<_> =
            (0..states).step_by(PANEL).map(|start| start..(start + PANEL).min(states)).collect();
        // Down, from the first row that is not zero.
        let begin = first / PANEL * PANEL;
        for rows in &panels[first / PANEL..] {
            let (solved, rest) = solution.split_at_mut(rows.start * count);
            add_product(
                BlockMut::new(rest, count, (0, 0), (rows.len(), count)),
                Block::new(
                    &self.entries,
                    states,
                    (rows.start, begin),
                    (rows.len(), rows.start - begin),
                ),
                Block::new(solved, count, (begin, 0), (rows.start - begin, count)),
                gemm::Parallelism::None,
            );
            for row in 1..rows.len() {
                let (above, rest) = rest.split_at_mut(row * count);
                let factors = &self.entries[(rows.start + row) * states + rows.start..][..row];
                add_rows(&mut rest[..count], factors, above);
            }
        }
        // And up.
        for rows in panels.iter().rev() {
            let (rest, solved) = solution.split_at_mut(rows.end * count);
            let rest = &mut rest[rows.start * count..];
            add_product(
                BlockMut::new(rest, count, (0, 0), (rows.len(), count)),
                Block::new(
                    &self.entries,
                    states,
                    (rows.start, rows.end),
                    (rows.len(), states - rows.end),
                ),
                Block::new(solved, count, (0, 0), (states - rows.end, count)),
                gemm::Parallelism::None,
            );
            for row in (0..rows.len()).rev() {
                let (above, below) = rest.split_at_mut((row + 1) * count);
                let place = rows.start + row;
                let factors = &self.entries[place * states + place + 1..][..rows.len() - row - 1];
                let out = &mut above[row * count..];
                add_rows(out, factors, below);
                out.iter_mut().for_each(|out| *out /= self.pivots[place]);
            }
        }
        solution
    }
}

/// Eliminates the rows of a panel, which begins at row and column `first`, from each other.
fn eliminate_panel(
    panel: &mut [f64],
    states: usize,
    first: usize,
    excess: &mut [f64],
    pivots: &mut [f64],
) {
    for i in 0..pivots.len() {
        let (above, row) = panel.split_at_mut(i * states);
        for (k, upper) in above.chunks_exact(states).enumerate() {
            let (multiplier, row) = row[first + k..states].split_first_mut().expect("k is below i");
            *multiplier /= pivots[k];
            add_rows(row, &[*multiplier], &upper[first + k + 1..]);
            excess[i] += *multiplier * excess[k];
        }
        pivots[i] = excess[i] + row[first + i + 1..states].iter().sum::<f64>();
    }
}

/// `out += factors[0] * rows[0] + factors[1] * rows[1] + ...`, of rows as long as `out`.
fn add_rows(out: &mut [f64], factors: &[f64], rows: &[f64]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (&factor, row) in factors.iter().zip(rows.chunks_exact(out.len())) {
                for (out, &value) in out.iter_mut().zip(row) {
                    *out += factor * value;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, unit_f64};
    use rand_core::Rng;

    use super::*;

    /// Rows of probabilities times the discount, most of them zero.
    fn entries(states: usize, discount: f64, seed: u64) -> Vec<f64> {
        let mut stream = Philox::new(seed).stream(0, 0);
        let mut entries = vec![0.0; states * states];
        for (state, row) in entries.chunks_exact_mut(states).enumerate() {
            for entry in &mut *row {
                let (chance, size) = (unit_f64(stream.next_u64()), unit_f64(stream.next_u64()));
                *entry = if chance < 0.1 { size } else { 0.0 };
            }
            row[(state + 1) % states] += 1e-3;
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|entry| *entry *= discount / sum);
        }
        entries
    }

    fn inverse(states: usize, entries: &[f64], excess: f64) -> Vec<f64> {
        let factors = Factors::new(states, entries.to_vec(), excess);
        let mut inverse = vec![0.0; states * states];
        for first in (0..states).step_by(50) {
            let count = 50.min(states - first);
            let solution = factors.solve(first, count, 1.0);
            for (row, solution) in inverse.chunks_exact_mut(states).zip(solution.chunks(count)) {
                row[first..first + count].copy_from_slice(solution);
            }
        }
        inverse
    }

    #[test]
    fn the_inverse_solves_the_system() {
        for states in [1, 2, 63, 64, 65, 128, 200] {
            let (discount, excess) = (0.9, 1.0 - 0.9);
            let entries = entries(states, discount, states as u64);
            let inverse = inverse(states, &entries, excess);
            for goal in 0..states {
                for state in 0..states {
                    // x = b + P x, which subtracts nothing either.
                    let row = &entries[state * states..][..states];
                    let ahead: f64 =
                        row.iter().enumerate().map(|(n, p)| p * inverse[n * states + goal]).sum();
                    let expected = if state == goal { 1.0 } else { 0.0 } + ahead;
                    let found = inverse[state * states + goal];
                    assert!((found - expected).abs() <= 1e-13 * expected, "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn every_entry_is_right_however_near_to_singular_the_matrix_is() {
        // From 0 to 1 with probability q and back with r, both discounted, in closed form.
        let (q, r) = (0.3, 1e-9);
        for excess in [0.5, 1e-3, 1e-9, 1e-15] {
            let discount = 1.0 - excess;
            let (q, r) = (discount * q, discount * r);
            let inverse = inverse(2, &[0.0, q, r, 0.0], excess);
            // The determinant (e + q)(e + r) - q r without its difference.
            let determinant = excess * (excess + q + r);
            let expected = [excess + r, q, r, excess + q].map(|entry| entry / determinant);
            for (found, expected) in inverse.iter().zip(expected) {
                assert!((found - expected).abs() <= 4e-16 * expected, "{found} {expected}");
            }
        }
    }

    #[test]
    fn what_cannot_happen_is_exactly_zero() {
        // Two halves that never meet, over several panels.
        let states = 150;
        let mut entries = entries(states, 0.99, 1);
        for (state, row) in entries.chunks_exact_mut(states).enumerate() {
            for (next, entry) in row.iter_mut().enumerate() {
                if state % 2 != next % 2 {
                    *entry = 0.0;
                }
            }
        }
        let inverse = inverse(states, &entries, 0.01);
        for (state, row) in inverse.chunks_exact(states).enumerate() {
            for (goal, &entry) in row.iter().enumerate() {
                assert_eq!(entry == 0.0, state % 2 != goal % 2, "{state} to {goal}: {entry}");
            }
        }
    }
}
