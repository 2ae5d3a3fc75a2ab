//! What is in a data set, at a glance; and the statistics that normalise it.

use std::fmt;

use crate::{Dataset, Matrix};

/// Sizes, ranges and defects of a data set; prints as a short report.
///
/// ```
/// use cm_replay::{Dataset, Matrix, Summary};
///
/// let observations = Matrix::from_vec(4, 1, vec![0.0, 1.0, f32::NAN, 3.0])?;
/// let actions = Matrix::from_vec(4, 1, vec![-1.0, 1.0, 0.5, 0.0])?;
/// let summary = Summary::of(&Dataset::new(observations, actions, vec![1, 4])?);
/// assert_eq!((summary.shortest, summary.longest), (1, 3));
/// assert_eq!((summary.arrays[0].not_finite, summary.arrays[0].columns[0].max), (1, 3.0));
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Rows.
    pub steps: usize,
    /// Trajectories.
    pub trajectories: usize,
    /// Steps that have a next one.
    pub transitions: usize,
    /// Rows of the shortest trajectory.
    pub shortest: usize,
    /// Rows of the middle one in order of length.
    pub median: usize,
    /// Rows of the longest trajectory.
    pub longest: usize,
    /// The arrays: observations, actions, extras.
    pub arrays: Vec<ArraySummary>,
}

/// One array of a [`Summary`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySummary {
    /// The array's name.
    pub name: String,
    /// How many of its numbers are NaN or infinite.
    pub not_finite: usize,
    /// Its columns; for an array without finite numbers the mean is 0 and the range empty.
    pub columns: Vec<Column>,
}

/// Range, mean and spread of the finite numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
    /// The mean.
    pub mean: f32,
    /// The standard deviation (dividing by the count).
    pub deviation: f32,
}

impl Summary {
    /// Reads all of `data` twice.
    pub fn of(data: &Dataset) -> Self {
        let mut lengths: Vec<usize> =
            (0..data.trajectories()).map(|trajectory| data.trajectory(trajectory).len()).collect();
        lengths.sort_unstable();
        Self {
            steps: data.steps(),
            trajectories: data.trajectories(),
            transitions: data.transitions(),
            shortest: lengths[0],
            median: lengths[lengths.len() / 2],
            longest: lengths[lengths.len() - 1],
            arrays: data
                .arrays()
                .map(|(name, matrix)| ArraySummary::of(name.to_owned(), matrix))
                .collect(),
        }
    }
}

impl ArraySummary {
    fn of(name: String, matrix: &Matrix) -> Self {
        let width = matrix.columns();
        let mut columns =
            vec![
                Column { min: f32::INFINITY, max: f32::NEG_INFINITY, mean: 0.0, deviation: 0.0 };
                width
            ];
        let (mut sums, mut counts) = (vec![0.0_f64; width], vec![0_usize; width]);
        for_each_finite(matrix, |at, number| {
            columns[at].min = columns[at].min.min(number);
            columns[at].max = columns[at].max.max(number);
            sums[at] += f64::from(number);
            counts[at] += 1;
        });
        let divide = |(sum, &count): (&f64, &usize)| sum / count.max(1) as f64;
        let means: Vec<f64> = sums.iter().zip(&counts).map(divide).collect();
        // A second pass around the means: the difference of large sums would lose the spread of
        // data far from zero.
        sums.fill(0.0);
        for_each_finite(matrix, |at, number| sums[at] += (f64::from(number) - means[at]).powi(2));
        let variances = sums.iter().zip(&counts).map(divide);
        for ((column, mean), variance) in columns.iter_mut().zip(&means).zip(variances) {
            column.mean = *mean as f32;
            column.deviation = variance.sqrt() as f32;
        }
        let not_finite = matrix.rows() * width - counts.iter().sum::<usize>();
        Self { name, not_finite, columns }
    }
}

fn for_each_finite(matrix: &Matrix, mut visit: impl FnMut(usize, f32)) {
    for row in matrix.iter() {
        for (at, &number) in row.iter().enumerate().filter(|(_, number)| number.is_finite()) {
            visit(at, number);
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} trajectories, {} steps, {} transitions",
            self.trajectories, self.steps, self.transitions
        )?;
        writeln!(
            formatter,
            "trajectory length: {} to {}, median {}",
            self.shortest, self.longest, self.median
        )?;
        for array in &self.arrays {
            let width = array.columns.len();
            writeln!(
                formatter,
                "{} [{}, {width}]: {} NaN or infinite",
                array.name, self.steps, array.not_finite
            )?;
            writeln!(formatter, "  column         min         max        mean   deviation")?;
            for (number, column) in array.columns.iter().enumerate() {
                writeln!(
                    formatter,
                    "  {number:>6} {:>11.4} {:>11.4} {:>11.4} {:>11.4}",
                    column.min, column.max, column.mean, column.deviation
                )?;
            }
        }
        Ok(())
    }
}

/// Shift and scale that give each column mean 0 and standard deviation 1.
///
/// ```
/// use cm_replay::{Matrix, Normalization};
///
/// let matrix = Matrix::from_vec(2, 2, vec![1.0, 5.0, 3.0, 5.0])?;
/// let Normalization { mean, deviation } = Normalization::of(&matrix);
/// assert_eq!((mean, deviation), (vec![2.0, 5.0], vec![1.0, 1.0])); // 1 for a constant column
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// The mean of each column's finite numbers.
    pub mean: Vec<f32>,
    /// The standard deviation of each column's finite numbers, or 1 where it is below 1e-6.
    pub deviation: Vec<f32>,
}

impl Normalization {
    /// The statistics of `matrix`.
    pub fn of(matrix: &Matrix) -> Self {
        let columns = ArraySummary::of(String::new(), matrix).columns;
        let scale = |deviation: f32| if deviation < 1e-6 { 1.0 } else { deviation };
        Self {
            mean: columns.iter().map(|column| column.mean).collect(),
            deviation: columns.iter().map(|column| scale(column.deviation)).collect(),
        }
    }
}
