//! Trajectories: rows of observations and actions, cut into trajectories.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Error, Matrix, Result};

/// Trajectories one after another: `observations` `[N, o]`, `actions` `[N, a]`, the rows at which
/// each trajectory ends, and further arrays `[N, *]` by name.
///
/// A trajectory of `L` rows has `L - 1` transitions: from a row to the next. The action of its last
/// row belongs to no transition, which is also how D4RL and OGBench files are meant.
///
/// ```
/// use cm_replay::{Dataset, Matrix};
///
/// // Two trajectories on a line: 0, 1, 2 and 10, 11.
/// let observations = Matrix::from_vec(5, 1, vec![0.0, 1.0, 2.0, 10.0, 11.0])?;
/// let actions = Matrix::from_vec(5, 1, vec![1.0; 5])?;
/// let data = Dataset::new(observations, actions, vec![3, 5])?;
/// assert_eq!(data.trajectories(), 2);
/// assert_eq!(data.transitions(), 3);
/// assert_eq!(data.trajectory(1), 3..5);
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    observations: Matrix,
    actions: Matrix,
    ends: Vec<usize>,
    extras: BTreeMap<String, Matrix>,
}

impl Dataset {
    /// Checks and joins the arrays; `ends` holds the row after the last one of each trajectory.
    pub fn new(observations: Matrix, actions: Matrix, ends: Vec<usize>) -> Result<Self> {
        let rows = observations.rows();
        if rows == 0 || observations.columns() == 0 {
            return Err(Error::Shape {
                key: "observations".to_owned(),
                expected: "[N, o] with N and o at least 1".to_owned(),
                found: vec![rows, observations.columns()],
            });
        }
        check_rows("actions", &actions, rows)?;
        check_ends(&ends, rows)?;
        Ok(Self { observations, actions, ends, extras: BTreeMap::new() })
    }

    /// Adds (or replaces) a further array with a row for every step.
    pub fn with_extra(mut self, name: impl Into<String>, extra: Matrix) -> Result<Self> {
        let name = name.into();
        check_rows(&name, &extra, self.steps())?;
        self.extras.insert(name, extra);
        Ok(self)
    }

    /// The data with every observation and every action changed (see [`Matrix::map_rows`]).
    pub fn map_rows(
        self,
        observation: impl FnMut(&mut [f32]),
        action: impl FnMut(&mut [f32]),
    ) -> Result<Self> {
        let Self { observations, actions, ends, extras } = self;
        let observations = observations.map_rows(observation)?;
        Ok(Self { observations, actions: actions.map_rows(action)?, ends, extras })
    }

    /// The observations, `[N, o]`.
    pub fn observations(&self) -> &Matrix {
        &self.observations
    }

    /// The actions, `[N, a]`.
    pub fn actions(&self) -> &Matrix {
        &self.actions
    }

    /// The row after the last one of each trajectory, ascending; the last is [`Self::steps`].
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Further arrays by name.
    pub fn extras(&self) -> &BTreeMap<String, Matrix> {
        &self.extras
    }

    /// How many rows there are, N.
    pub fn steps(&self) -> usize {
        self.observations.rows()
    }

    /// How many trajectories there are.
    pub fn trajectories(&self) -> usize {
        self.ends.len()
    }

    /// How many steps have a next one.
    pub fn transitions(&self) -> usize {
        self.steps() - self.trajectories()
    }

    /// The rows of a trajectory. Panics if there is no such trajectory, as indexing does.
    pub fn trajectory(&self, trajectory: usize) -> Range<usize> {
        let start = if trajectory == 0 { 0 } else { self.ends[trajectory - 1] };
        start..self.ends[trajectory]
    }

    /// An error that names the first number which is NaN or infinite, if there is one.
    pub fn check_finite(&self) -> Result<()> {
        self.observations.check_finite("observations")?;
        self.actions.check_finite("actions")?;
        self.extras.iter().try_for_each(|(name, extra)| extra.check_finite(name))
    }

    /// Every array with its name: `observations`, `actions`, then the extras in order of name.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&str, &Matrix)> {
        [("observations", &self.observations), ("actions", &self.actions)]
            .into_iter()
            .chain(self.extras.iter().map(|(name, extra)| (name.as_str(), extra)))
    }
}

fn check_rows(key: &str, matrix: &Matrix, rows: usize) -> Result<()> {
    if matrix.rows() == rows {
        return Ok(());
    }
    Err(Error::Shape {
        key: key.to_owned(),
        expected: format!("{rows} rows, one for each observation"),
        found: vec![matrix.rows(), matrix.columns()],
    })
}

fn check_ends(ends: &[usize], rows: usize) -> Result<()> {
    let reason = if ends.last() != Some(&rows) {
        format!("the last is {:?}, expected the number of rows, {rows}", ends.last())
    } else if ends[0] == 0 {
        "the first is 0, expected at least one row in a trajectory".to_owned()
    } else if let Some(pair) = ends.windows(2).find(|pair| pair[0] >= pair[1]) {
        format!("{} is followed by {}, expected a larger one", pair[0], pair[1])
    } else {
        return Ok(());
    };
    Err(Error::Trajectories { reason })
}
