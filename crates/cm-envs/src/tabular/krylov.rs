//! A stabilised bi-conjugate gradient solver (van der Vorst's BiCGSTAB) for the large sparse
//! systems that policy iteration leads to.

use super::preconditioner::Factors;
use super::sparse::SplitRows;

/// The linear system `x = C x + b` of a non-negative matrix `C` without diagonal, whose rows sum to
/// 1 at most.
#[derive(Default)]
pub(crate) struct LinearSystem {
    matrix: SplitRows,
    /// `b`.
    constants: Vec<f64>,
}

/// How exact a solution must be: the preconditioned residual, an estimate of the error, falls to
/// `relative` of what it is at first and to `absolute`.
#[derive(Clone, Copy)]
pub(crate) struct Accuracy {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

/// Iterations with the cheap preconditioner before the other is tried.
const FAST_MIXING_ITERATIONS: usize = 16;
const ITERATIONS: usize = 500;

impl LinearSystem {
    /// Appends a row, given as columns with their coefficients in any order.
    pub(crate) fn push_row(&mut self, row: &mut [(u32, f64)], constant: f64) {
        row.sort_unstable_by_key(|entry| entry.0);
        let split = row.partition_point(|entry| (entry.0 as usize) < self.matrix.len());
        let (before, after) = row.split_at(split);
        self.matrix.push(before.iter().copied(), after.iter().copied());
        self.constants.push(constant);
    }

    /// Starts from zero. `None` when the iteration breaks down or takes too long.
    ///
    /// A few iterations with the cheap preconditioner show whether the graph mixes fast, as random
    /// graphs do, or slowly, as grids do. `slow_mixing` says what the last system of the same kind
    /// was, and is updated.
    pub(crate) fn solve(&self, accuracy: Accuracy, slow_mixing: &mut bool) -> Option<Vec<f64>> {
        if !*slow_mixing {
            let factors = Factors::gauss_seidel(&self.matrix);
            let solution = self.iterate(&factors, FAST_MIXING_ITERATIONS, accuracy);
            if solution.is_some() {
                return solution;
            }
            *slow_mixing = true;
        }
        self.iterate(&Factors::incomplete(&self.matrix), ITERATIONS, accuracy)
    }

    fn iterate(
        &self,
        factors: &Factors,
        iterations: usize,
        accuracy: Accuracy,
    ) -> Option<Vec<f64>> {
        let mut residual = self.constants.clone();
        factors.solve(&mut residual);
        let target = (largest(&residual) * accuracy.relative).min(accuracy.absolute);
        let mut solution = vec![0.0; residual.len()];
        let shadow = residual.clone();
        let mut direction = residual.clone();
        let mut product = dot(&shadow, &residual);
        for _ in 0..iterations {
            let along = self.apply(factors, &direction);
            let step = product / dot(&shadow, &along);
            add(&mut solution, step, &direction);
            add(&mut residual, -step, &along);
            if largest(&residual) <= target {
                return Some(solution);
            }
            let across = self.apply(factors, &residual);
            let stabiliser = dot(&across, &residual) / dot(&across, &across);
            add(&mut solution, stabiliser, &residual);
            add(&mut residual, -stabiliser, &across);
            let size = largest(&residual);
            if size <= target {
                return Some(solution);
            }
            if !size.is_finite() {
                return None;
            }
            let next_product = dot(&shadow, &residual);
            let turn = next_product / product * (step / stabiliser);
            product = next_product;
            for ((direction, along), residual) in direction.iter_mut().zip(&along).zip(&residual) {
                *direction = residual + turn * (*direction - stabiliser * along);
            }
        }
        None
    }

    /// `(L U)^-1 (I - C) v`.
    fn apply(&self, factors: &Factors, vector: &[f64]) -> Vec<f64> {
        let rows = vector.iter().enumerate();
        let mut result: Vec<f64> =
            rows.map(|(row, entry)| entry - self.matrix.times(row, vector)).collect();
        factors.solve(&mut result);
        result
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn add(vector: &mut [f64], factor: f64, other: &[f64]) {
    for (entry, other) in vector.iter_mut().zip(other) {
        *entry += factor * other;
    }
}

/// The largest magnitude; NaN when there is one.
fn largest(vector: &[f64]) -> f64 {
    vector.iter().fold(0.0, |largest, entry| {
        if entry.abs() <= largest || largest.is_nan() { largest } else { entry.abs() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk on a ring of 200 with unequal weights, leaving it with probability 1/100 at each
    /// step.
    fn ring() -> LinearSystem {
        let mut system = LinearSystem::default();
        for row in 0..200_u32 {
            let weight = 0.1 + f64::from(row % 7) / 10.0;
            let mut entries =
                [((row + 1) % 200, 0.99 * weight), ((row + 199) % 200, 0.99 * (1.0 - weight))];
            system.push_row(&mut entries, f64::from(row % 5));
        }
        system
    }

    /// Both preconditioners lead to the solution: what is left of the equation is as small as was
    /// asked for.
    #[test]
    fn solutions_satisfy_the_equation() {
        let system = ring();
        for slow in [false, true] {
            let accuracy = Accuracy { relative: 1e-12, absolute: 1e-9 };
            let solution = system.solve(accuracy, &mut { slow }).unwrap();
            for (row, value) in solution.iter().enumerate() {
                let right = system.matrix.times(row, &solution) + system.constants[row];
                assert!((value - right).abs() < 1e-7, "row {row}: {value} and {right}");
            }
        }
    }

    #[test]
    fn a_slowly_mixing_system_is_recognised() {
        let mut slow = false;
        ring().solve(Accuracy { relative: 1e-9, absolute: 1e-6 }, &mut slow).unwrap();
        assert!(slow);
    }
}
