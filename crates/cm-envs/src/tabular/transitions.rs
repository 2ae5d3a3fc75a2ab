//! Rows of transition probabilities, compressed: what chains and controlled processes are made of.

use crate::Error;
use crate::error::{check_index, check_probability};

/// How far from 1 the sum of a row may be before it is refused; a sum within it is rescaled to 1.
pub(crate) const SUM_TOLERANCE: f64 = 1e-9;

/// `p(next | row)` as compressed sparse rows. A row lists each successor of positive probability
/// once, in increasing order, so the stored entries are the support.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transitions {
    states: usize,
    /// Row `r` is the range `starts[r]..starts[r + 1]` of the two lists below.
    starts: Vec<usize>,
    next: Vec<u32>,
    probability: Vec<f64>,
}

impl Transitions {
    /// Collects `rows` over `states` successors; `name` says which row an error speaks of.
    pub(crate) fn from_rows<Row>(
        states: usize,
        rows: impl IntoIterator<Item = Row>,
        name: impl Fn(usize) -> String,
    ) -> Result<Self, Error>
    where
        Row: IntoIterator<Item = (usize, f64)>,
    {
        if states == 0 {
            return Err(Error::Empty { what: "states" });
        }
        let limit = u32::MAX as usize;
        if states > limit {
            return Err(Error::TooMany { what: "states", limit, found: states });
        }
        let mut transitions =
            Self { states, starts: vec![0], next: Vec::new(), probability: Vec::new() };
        for (index, row) in rows.into_iter().enumerate() {
            transitions.push(row.into_iter().collect(), || name(index))?;
        }
        Ok(transitions)
    }

    /// Number of states a row can lead to.
    pub(crate) fn states(&self) -> usize {
        self.states
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of stored probabilities, all positive.
    pub(crate) fn len(&self) -> usize {
        self.next.len()
    }

    /// The successors of a row with their probabilities.
    pub(crate) fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone {
        let range = self.starts[row]..self.starts[row + 1];
        self.next[range.clone()]
            .iter()
            .zip(&self.probability[range])
            .map(|(&next, &probability)| (next as usize, probability))
    }

    fn push(&mut self, mut row: Vec<(usize, f64)>, name: impl Fn() -> String) -> Result<(), Error> {
        for &(next, probability) in &row {
            check_index(|| format!("{}, next state", name()), next, self.states)?;
            check_probability(|| format!("{}, entry {next}", name()), probability)?;
        }
        let sum = row.iter().fold(0.0, |sum, &(_, probability)| sum + probability);
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(Error::NotADistribution {
                what: name(),
                tolerance: SUM_TOLERANCE,
                found: sum,
            });
        }
        row.retain(|&(_, probability)| probability > 0.0);
        row.sort_by_key(|&(next, _)| next);
        row.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 += later.1;
            }
            same
        });
        for (next, probability) in row {
            self.next.push(next as u32);
            self.probability.push(probability / sum);
        }
        self.starts.push(self.next.len());
        Ok(())
    }
}

/// The entries of a dense row that are not zero (NaN included, so that it is refused later).
pub(crate) fn dense_row(row: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    row.iter().copied().enumerate().filter(|&(_, probability)| probability != 0.0)
}
