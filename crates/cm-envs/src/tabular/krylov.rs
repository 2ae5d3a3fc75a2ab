//! A stabilised bi-conjugate gradient solver (van der Vorst's BiCGSTAB), preconditioned by a Gauss-Seidel sweep.

/// The fixed point `w = C w + b` of a non-negative matrix `C` without diagonal.
pub(crate) struct FixedPoint {
    /// Row `i` of `C` is the range `starts[i]..starts[i + 1]` of the two lists below.
    pub(crate) starts: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) coefficients: Vec<f64>,
    /// `b`.
    pub(crate) constants: Vec<f64>,
}

const MAX_ITERATIONS: usize = 400;

impl FixedPoint {
    /// Improves on `w = 1` until a Gauss-Seidel sweep changes no entry by more than `reduction`
    /// times what it changes at the start. `None` when the result is no better or not positive.
    ///
    /// A sweep is the affine map `w -> S w + c`; what is solved is `(I - S) w = c`, so one
    /// application costs one sweep and the rows' order is the preconditioner.
    pub(crate) fn solve_from_one(&self, reduction: f64) -> Option<Vec<f64>> {
        let size = self.constants.len();
        let mut solution = vec![1.0; size];
        let mut residual = self.residual(&solution);
        let initial = largest(&residual);
        let target = initial * reduction;
        let shadow = residual.clone();
        let mut direction = residual.clone();
        let mut product = dot(&shadow, &residual);
        for _ in 0..MAX_ITERATIONS {
            let along = self.apply(&direction);
            let step = product / dot(&shadow, &along);
            add(&mut residual, -step, &along);
            let across = self.apply(&residual);
            let stabiliser = dot(&across, &residual) / dot(&across, &across);
            if !(step.is_finite() && stabiliser.is_finite()) {
                // Either the half step was exact, or the method broke down.
                if step.is_finite() {
                    add(&mut solution, step, &direction);
                }
                break;
            }
            add(&mut solution, step, &direction);
            add(&mut solution, stabiliser, &residual);
            add(&mut residual, -stabiliser, &across);
            if largest(&residual) <= target {
                break;
            }
            let next_product = dot(&shadow, &residual);
            let turn = next_product / product * (step / stabiliser);
            product = next_product;
            for ((direction, along), residual) in direction.iter_mut().zip(&along).zip(&residual) {
                *direction = residual + turn * (*direction - stabiliser * along);
            }
        }
        let improved = largest(&self.residual(&solution)) < 0.5 * initial;
        (improved && solution.iter().all(|&entry| entry > 0.0)).then_some(solution)
    }

    /// `(S w + c) - w`.
    fn residual(&self, solution: &[f64]) -> Vec<f64> {
        let mut swept = solution.to_vec();
        self.sweep(&mut swept, &self.constants);
        for (swept, entry) in swept.iter_mut().zip(solution) {
            *swept -= entry;
        }
        swept
    }

    /// `(I - S) v`.
    fn apply(&self, vector: &[f64]) -> Vec<f64> {
        let mut swept = vector.to_vec();
        self.sweep(&mut swept, &[]);
        for (swept, entry) in swept.iter_mut().zip(vector) {
            *swept = entry - *swept;
        }
        swept
    }

    /// Replaces each entry in turn by its row's value, with the constants left out when empty.
    fn sweep(&self, vector: &mut [f64], constants: &[f64]) {
        for row in 0..vector.len() {
            let range = self.starts[row]..self.starts[row + 1];
            let mut value = constants.get(row).copied().unwrap_or(0.0);
            for (&column, coefficient) in
                self.columns[range.clone()].iter().zip(&self.coefficients[range])
            {
                value += coefficient * vector[column as usize];
            }
            vector[row] = value;
        }
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
