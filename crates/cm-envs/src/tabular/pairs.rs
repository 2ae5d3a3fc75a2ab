//! One number for every ordered pair of states.

use std::ops::Index;

/// A value for every ordered pair `(start, goal)`, stored goal by goal; index it with the pair.
///
/// ```
/// use cm_envs::tabular::{Discount, MarkovChain};
///
/// let chain = MarkovChain::from_dense(2, &[0.5, 0.5, 0.0, 1.0])?;
/// let occupancy = chain.occupancy(Discount::new(0.5)?);
/// // Started in the absorbing state, all of the future is there.
/// assert_eq!(occupancy[(1, 1)], 1.0);
/// assert_eq!(occupancy.to_goal(0), [2.0 / 3.0, 0.0]);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AllPairs {
    states: usize,
    values: Vec<f64>,
}

impl AllPairs {
    /// `values[goal * states + start]`.
    pub(crate) fn new(states: usize, values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), states * states);
        Self { states, values }
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// Number of states; there are its square of values.
    pub fn states(&self) -> usize {
        self.states
    }

    /// The values of every start for one goal.
    ///
    /// # Panics
    /// If `goal` is not below [`states`](Self::states).
    pub fn to_goal(&self, goal: usize) -> &[f64] {
        &self.values[goal * self.states..][..self.states]
    }

    /// The values of every goal for one start, in order.
    ///
    /// # Panics
    /// If `start` is not below [`states`](Self::states).
    pub fn from_start(&self, start: usize) -> impl ExactSizeIterator<Item = f64> + '_ {
        assert!(start < self.states, "start {start} of {} states", self.states);
        self.values[start..].iter().step_by(self.states).copied()
    }
}

impl Index<(usize, usize)> for AllPairs {
    type Output = f64;

    fn index(&self, (start, goal): (usize, usize)) -> &f64 {
        &self.to_goal(goal)[start]
    }
}
