//! Whether draws have the probabilities they should have.

use std::sync::Arc;

use cm_replay::{Dataset, Matrix};

/// How many standard deviations Pearson's statistic of `counts` lies above what `probabilities`
/// make it (Wilson and Hilferty's normal approximation). Categories expected less than five times
/// are joined.
pub(crate) fn surprise(counts: &[f64], probabilities: &[f64]) -> f64 {
    let total: f64 = counts.iter().sum();
    let (mut statistic, mut categories, mut joined) = (0.0, 0.0, (0.0, 0.0));
    for (count, probability) in counts.iter().zip(probabilities) {
        joined = (joined.0 + count, joined.1 + total * probability);
        if joined.1 >= 5.0 {
            statistic += (joined.0 - joined.1).powi(2) / joined.1;
            categories += 1.0;
            joined = (0.0, 0.0);
        }
    }
    if joined.1 > 0.0 {
        statistic += (joined.0 - joined.1).powi(2) / joined.1;
    }
    assert!(joined.1 > 0.0 || joined.0 == 0.0, "drew what has no probability");
    let freedom: f64 = categories - 1.0 + f64::from(u8::from(joined.1 > 0.0));
    if freedom < 1.0 {
        return 0.0;
    }
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Surprises of independent draws are about standard normal: none far out, none of them large on
/// average.
pub(crate) fn assert_unsurprising(surprises: &[f64]) {
    let mean = surprises.iter().sum::<f64>() / surprises.len() as f64;
    let largest = surprises.iter().copied().fold(f64::MIN, f64::max);
    assert!(largest < 4.5, "{surprises:?}");
    assert!(mean.abs() < 4.5 / (surprises.len() as f64).sqrt(), "{mean}: {surprises:?}");
}

/// Trajectories of these lengths whose single observation is the row's number.
pub(crate) fn data(lengths: &[usize]) -> Arc<Dataset> {
    let ends: Vec<usize> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end)
        })
        .collect();
    let rows = ends[ends.len() - 1];
    let numbers = Matrix::from_vec(rows, 1, (0..rows).map(|row| row as f32).collect()).unwrap();
    Arc::new(Dataset::new(numbers.clone(), numbers, ends).unwrap())
}
