//! From named arrays, wherever they come from, to a data set.

use super::ReadOptions;
use crate::{Dataset, Error, Matrix, Result};

/// A file of named arrays.
pub(super) trait Arrays {
    /// The names of all arrays.
    fn names(&self) -> Vec<String>;

    /// An array `[N, ...]` of real numbers as `[N, product of the others]`.
    fn numbers(&mut self, name: &str) -> Result<Matrix>;

    /// An array `[N]` of integers that are not negative.
    fn integers(&mut self, name: &str) -> Result<Vec<u64>>;
}

/// Whether `terminals` end trajectories where there is nothing better: they do in OGBench, they do
/// not in D4RL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminals {
    EndTrajectories,
    #[cfg(feature = "hdf5")]
    MarkSuccess,
}

pub(super) fn assemble(
    arrays: &mut impl Arrays,
    terminals: Terminals,
    options: &ReadOptions,
) -> Result<Dataset> {
    let names = arrays.names();
    let observations = named(arrays, &names, "observations")?;
    let actions = named(arrays, &names, "actions")?;
    let ends = find_ends(arrays, &names, terminals, options, &observations)?;
    let data = Dataset::new(observations, actions, ends)?;
    options.extras.iter().try_fold(data, |data, name| {
        let extra = named(arrays, &names, name)?;
        data.with_extra(name.clone(), extra)
    })
}

fn named(arrays: &mut impl Arrays, names: &[String], name: &str) -> Result<Matrix> {
    if !names.iter().any(|known| known == name) {
        return Err(Error::Missing { key: name.to_owned(), found: names.to_vec() });
    }
    arrays.numbers(name)
}

fn find_ends(
    arrays: &mut impl Arrays,
    names: &[String],
    terminals: Terminals,
    options: &ReadOptions,
    observations: &Matrix,
) -> Result<Vec<usize>> {
    let rows = observations.rows();
    let has = |name: &str| names.iter().any(|known| known == name);
    let mut ends = if has("timeouts") {
        flagged(arrays, "timeouts", rows)?
    } else if has("ends") {
        let ends = arrays.integers("ends")?;
        ends.into_iter().map(|end| usize::try_from(end).unwrap_or(usize::MAX)).collect()
    } else if terminals == Terminals::EndTrajectories && has("terminals") {
        flagged(arrays, "terminals", rows)?
    } else if options.xy_jump.is_some() {
        Vec::new()
    } else {
        let key = match terminals {
            #[cfg(feature = "hdf5")]
            Terminals::MarkSuccess => {
                "timeouts or ends (or set the largest xy step to find the ends by)"
            }
            Terminals::EndTrajectories => "timeouts, ends or terminals",
        };
        return Err(Error::Missing { key: key.to_owned(), found: names.to_vec() });
    };
    if let Some(limit) = options.xy_jump {
        ends.extend(jumps(observations, limit)?);
        ends.sort_unstable();
        ends.dedup();
    }
    // A recording may stop in the middle of a trajectory.
    if rows > 0 && ends.last() != Some(&rows) && ends.last().is_none_or(|&last| last < rows) {
        ends.push(rows);
    }
    Ok(ends)
}

/// One past each row whose flag is set.
fn flagged(arrays: &mut impl Arrays, name: &str, rows: usize) -> Result<Vec<usize>> {
    let flags = arrays.numbers(name)?;
    if (flags.rows(), flags.columns()) != (rows, 1) {
        return Err(Error::Shape {
            key: name.to_owned(),
            expected: format!("[{rows}], one for each observation"),
            found: vec![flags.rows(), flags.columns()],
        });
    }
    let set = flags.iter().enumerate().filter(|(_, flag)| flag[0] != 0.0);
    Ok(set.map(|(row, _)| row + 1).collect())
}

/// The rows whose position is farther than `limit` from the row before.
fn jumps(observations: &Matrix, limit: f32) -> Result<Vec<usize>> {
    if observations.columns() < 2 {
        return Err(Error::Shape {
            key: "observations".to_owned(),
            expected: "at least 2 columns, x and y, to find jumps in".to_owned(),
            found: vec![observations.rows(), observations.columns()],
        });
    }
    let far = |&row: &usize| {
        let (before, after) = (observations.row(row - 1), observations.row(row));
        (after[0] - before[0]).hypot(after[1] - before[1]) > limit
    };
    Ok((1..observations.rows()).filter(far).collect())
}

/// The most bytes that `stored` bytes of deflate can become: each of its bits stands for at most
/// 129 bytes.
#[cfg(any(feature = "hdf5", feature = "npz"))]
pub(super) fn largest_inflated(stored: u64) -> u64 {
    stored.saturating_mul(1032).saturating_add(1032)
}
