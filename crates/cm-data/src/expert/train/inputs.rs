//! Running mean and variance of what the policy sees.

use bincode::{Decode, Encode};
use cm_envs::ant_maze::STATE;
use cm_nn::{Matrix, Snapshot};

use crate::expert::policy::{INPUT_LIMIT, VARIANCE_FLOOR, normalise};

/// How many inputs a statistic from a file stands for.
const TRUSTED: f64 = 1e6;

/// Statistics of inputs.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Inputs {
    mean: Vec<f64>,
    variance: Vec<f64>,
    count: f64,
}

impl Inputs {
    pub(super) fn new() -> Self {
        Self { mean: vec![0.0; STATE], variance: vec![1.0; STATE], count: 1e-4 }
    }

    /// Takes rows of 29 numbers into account.
    pub(super) fn update(&mut self, rows: &[f32]) {
        let added = (rows.len() / STATE) as f64;
        if added == 0.0 {
            return;
        }
        let total = self.count + added;
        for index in 0..STATE {
            let column = || rows.iter().skip(index).step_by(STATE).map(|&x| f64::from(x));
            let mean = column().sum::<f64>() / added;
            let variance = column().map(|x| (x - mean).powi(2)).sum::<f64>() / added;
            let gap = mean - self.mean[index];
            self.mean[index] += gap * added / total;
            let between = gap * gap * self.count * added / total;
            self.variance[index] =
                (self.variance[index] * self.count + variance * added + between) / total;
        }
        self.count = total;
    }

    pub(super) fn normalised(&self, rows: &[f32]) -> Vec<f32> {
        let mean: Vec<f32> = self.mean.iter().map(|&x| x as f32).collect();
        let scale: Vec<f32> =
            self.variance.iter().map(|&x| (x as f32 + VARIANCE_FLOOR).sqrt().recip()).collect();
        rows.chunks_exact(STATE)
            .flat_map(|row| normalise(row, &mean, &scale, INPUT_LIMIT))
            .collect()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let row = |numbers: &[f64]| Matrix {
            shape: [1, STATE],
            values: numbers.iter().map(|&x| x as f32).collect(),
        };
        let entries = [("input/mean", &self.mean), ("input/variance", &self.variance)];
        entries.into_iter().map(|(name, numbers)| (name.to_owned(), row(numbers))).collect()
    }

    pub(super) fn from_snapshot(snapshot: &Snapshot) -> Result<Self, String> {
        let numbers = |name: &str| {
            let matrix = snapshot.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
            let (found, expected) = (matrix.shape, [1, STATE]);
            if found != expected {
                return Err(format!("`{name}` has shape {found:?}, expected {expected:?}"));
            }
            Ok(matrix.values.iter().map(|&x| x.into()).collect())
        };
        Ok(Self {
            mean: numbers("input/mean")?,
            variance: numbers("input/variance")?,
            count: TRUSTED,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_give_the_statistics_of_the_whole() {
        let rows: Vec<f32> = (0..50 * STATE).map(|x| ((x * x) % 97) as f32).collect();
        let (mut parts, mut whole) = (Inputs::new(), Inputs::new());
        rows.chunks(7 * STATE).for_each(|part| parts.update(part));
        whole.update(&rows);
        parts.update(&[]);
        for index in 0..STATE {
            let column: Vec<f64> =
                rows.iter().skip(index).step_by(STATE).map(|&x| f64::from(x)).collect();
            let mean = column.iter().sum::<f64>() / 50.0;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 50.0;
            // The first guess counts for a ten-thousandth of a row.
            assert!((parts.mean[index] - mean).abs() < 1e-3, "{index}");
            assert!((parts.variance[index] / variance - 1.0).abs() < 1e-4, "{index}");
            assert!((parts.variance[index] - whole.variance[index]).abs() < 1e-9 * variance);
        }
        let again = Inputs::from_snapshot(&whole.snapshot()).unwrap();
        let (a, b) = (whole.normalised(&rows), again.normalised(&rows));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
