//! Approximate triangular factors of `I - C` for a non-negative matrix `C` whose rows sum to 1 at
//! most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::sparse::{SplitRows, product};

/// `I - C`, about `L U`: `L` with unit diagonal. Stored are `-L` before the diagonal and `-U` after
/// it.
pub(crate) struct Factors {
    rows: SplitRows,
    diagonal: Vec<f64>,
}

/// Entries kept on each side of the diagonal beyond those that `C` has, and their number at most.
const FILL: usize = 16;
const MOST_ENTRIES: usize = 64;
/// Smaller entries are dropped.
const SMALLEST_ENTRY: f64 = 1e-3;
/// The part of what is dropped that goes to the diagonal. All of it would make the factors exact on
/// constant vectors, which is how corrections travel far from the goal; a little less keeps the
/// diagonal away from zero. (Measured on grids, rings and random graphs together with the three
/// above.)
const RELAXATION: f64 = 0.9;
const SMALLEST_PIVOT: f64 = 0.01;

impl Factors {
    /// A Gauss-Seidel sweep: `L` is the part of `I - C` up to the diagonal. Enough for graphs that
    /// mix fast.
    pub(crate) fn gauss_seidel(matrix: &SplitRows) -> Self {
        let mut rows = SplitRows::default();
        for row in 0..matrix.len() {
            rows.push(matrix.before(row), std::iter::empty());
        }
        Self { rows, diagonal: vec![1.0; matrix.len()] }
    }

    /// Incomplete elimination with a threshold and a limited number of entries per row (Saad's
    /// ILUT), relaxed.
    pub(crate) fn incomplete(matrix: &SplitRows) -> Self {
        let mut factors = Self { rows: SplitRows::default(), diagonal: Vec::new() };
        let mut work = Work::new(matrix.len());
        for row in 0..matrix.len() {
            let mut pivot = 1.0;
            work.load(row, matrix.before(row).chain(matrix.after(row)));
            let mut before = Vec::new();
            while let Some(column) = work.next_before() {
                let coefficient = work.take(column);
                let factor = coefficient / factors.diagonal[column as usize];
                if factor < SMALLEST_ENTRY {
                    pivot -= RELAXATION * coefficient;
                    continue;
                }
                before.push((column, factor));
                for (later, coefficient) in factors.rows.after(column as usize) {
                    let fill = factor * coefficient;
                    if later as usize == row {
                        pivot -= fill;
                    } else {
                        work.add(row, later, fill);
                    }
                }
            }
            let mut after = work.take_after();
            for (column, factor) in keep_largest(&mut before, matrix.before(row).len()) {
                pivot -= RELAXATION * factor * factors.diagonal[column as usize];
            }
            for (_, coefficient) in keep_largest(&mut after, matrix.after(row).len()) {
                pivot -= RELAXATION * coefficient;
            }
            factors.rows.push(before.into_iter(), after.into_iter());
            factors.diagonal.push(f64::max(pivot, SMALLEST_PIVOT));
        }
        factors
    }

    /// `(L U)^-1 v`, in place.
    pub(crate) fn solve(&self, vector: &mut [f64]) {
        for row in 0..vector.len() {
            vector[row] += product(self.rows.before(row), vector);
        }
        for row in (0..vector.len()).rev() {
            vector[row] =
                (vector[row] + product(self.rows.after(row), vector)) / self.diagonal[row];
        }
    }
}

/// Cuts `entries` to the largest, as many as `own` and the fill allowed, and returns those cut off.
/// Those kept are in increasing order of their columns.
fn keep_largest(entries: &mut Vec<(u32, f64)>, own: usize) -> Vec<(u32, f64)> {
    entries.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    let most = (own + FILL).min(MOST_ENTRIES);
    let kept = entries.partition_point(|entry| entry.1 >= SMALLEST_ENTRY).min(most);
    let dropped = entries.split_off(kept);
    entries.sort_unstable_by_key(|entry| entry.0);
    dropped
}

/// One row during elimination, dense, with the columns that are not zero.
struct Work {
    values: Vec<f64>,
    /// Columns before the diagonal, to be eliminated from the left.
    before: BinaryHeap<Reverse<u32>>,
    after: Vec<u32>,
}

impl Work {
    fn new(size: usize) -> Self {
        Self { values: vec![0.0; size], before: BinaryHeap::new(), after: Vec::new() }
    }

    fn load(&mut self, row: usize, entries: impl Iterator<Item = (u32, f64)>) {
        for (column, coefficient) in entries {
            self.add(row, column, coefficient);
        }
    }

    /// Adds a positive coefficient.
    fn add(&mut self, row: usize, column: u32, coefficient: f64) {
        let value = &mut self.values[column as usize];
        if *value == 0.0 {
            if (column as usize) < row {
                self.before.push(Reverse(column));
            } else {
                self.after.push(column);
            }
        }
        *value += coefficient;
    }

    /// The leftmost column before the diagonal that is left.
    fn next_before(&mut self) -> Option<u32> {
        self.before.pop().map(|Reverse(column)| column)
    }

    fn take(&mut self, column: u32) -> f64 {
        std::mem::take(&mut self.values[column as usize])
    }

    fn take_after(&mut self) -> Vec<(u32, f64)> {
        let values = &mut self.values;
        self.after.drain(..).map(|c| (c, std::mem::take(&mut values[c as usize]))).collect()
    }
}
