//! Stationary policies.

use super::transitions::{Transitions, dense_row};
use crate::Error;
use crate::error::check_index;

/// A stationary policy: for each state a distribution over actions, `pi(a | s)`.
///
/// ```
/// use cm_envs::tabular::Policy;
///
/// let policy = Policy::from_dense(2, &[0.25, 0.75, 1.0, 0.0])?;
/// assert_eq!(policy.probability(0, 1), 0.75);
/// assert_eq!(Policy::deterministic(2, &[1, 0])?.probability(0, 1), 1.0);
/// assert!(Policy::from_dense(2, &[0.25, 0.5]).is_err());
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Policy(Transitions);

impl Policy {
    /// `pi(a | s)` at `probabilities[s * actions + a]`.
    pub fn from_dense(actions: usize, probabilities: &[f64]) -> Result<Self, Error> {
        if actions == 0 {
            return Err(Error::Empty { what: "actions" });
        }
        if probabilities.is_empty() {
            return Err(Error::Empty { what: "states" });
        }
        if !probabilities.len().is_multiple_of(actions) {
            return Err(Error::Length {
                what: "policy".into(),
                expected: probabilities.len().next_multiple_of(actions),
                found: probabilities.len(),
            });
        }
        Self::new(actions, probabilities.chunks_exact(actions).map(dense_row))
    }

    /// Every action equally likely in each of `states` states.
    pub fn uniform(states: usize, actions: usize) -> Result<Self, Error> {
        if actions == 0 {
            return Err(Error::Empty { what: "actions" });
        }
        Self::from_dense(actions, &vec![1.0 / actions as f64; states * actions])
    }

    /// Always `choices[s]` in state `s`.
    pub fn deterministic(actions: usize, choices: &[u32]) -> Result<Self, Error> {
        if choices.is_empty() {
            return Err(Error::Empty { what: "states" });
        }
        for (state, &action) in choices.iter().enumerate() {
            check_index(|| format!("policy, action in state {state}"), action as usize, actions)?;
        }
        Self::new(actions, choices.iter().map(|&action| [(action as usize, 1.0)]))
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.0.rows()
    }

    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.0.states()
    }

    /// `pi(action | state)`; zero for an action that does not exist.
    ///
    /// # Panics
    /// If `state` is not below [`states`](Self::states).
    pub fn probability(&self, state: usize, action: usize) -> f64 {
        self.choices(state).find(|&(choice, _)| choice == action).map_or(0.0, |choice| choice.1)
    }

    /// The actions a state may take, with their probabilities.
    pub(crate) fn choices(
        &self,
        state: usize,
    ) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone {
        self.0.row(state)
    }

    fn new<Row>(actions: usize, rows: impl IntoIterator<Item = Row>) -> Result<Self, Error>
    where
        Row: IntoIterator<Item = (usize, f64)>,
    {
        Transitions::from_rows(actions, rows, |state| format!("policy, state {state}")).map(Self)
    }
}
