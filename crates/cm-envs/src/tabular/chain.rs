//! Markov chains, the uncontrolled processes of the paper.

use serde::{Deserialize, Serialize};

use super::discount::Discount;
use super::file::ChainFile;
use super::pairs::AllPairs;
use super::process::ControlledProcess;
use super::reach::Predecessors;
use super::solver::GoalProblem;
use super::transitions::{Transitions, dense_row};
use super::wide::Wide;
use super::{all_pairs, occupancy};
use crate::Error;
use crate::error::check_index;

/// A Markov chain over the states `0..states`.
///
/// The paper's second worked example: from state 0 (its "1") states 1 and 2 are equally likely,
/// both lead to the absorbing state 3.
///
/// ```
/// use cm_envs::tabular::{Discount, MarkovChain};
///
/// let chain = MarkovChain::from_fn(4, |state| match state {
///     0 => vec![(1, 0.5), (2, 0.5)],
///     _ => vec![(3, 1.0)],
/// })?;
/// let discount = Discount::new(0.9)?;
/// let distances = chain.successor_distances(discount)?;
/// assert!((distances[(0, 3)] - 2.0 * discount.step_length()).abs() < 1e-12);
/// assert!((distances[(0, 1)] - (discount.step_length() + 2.0_f64.ln())).abs() < 1e-12);
/// assert_eq!(distances[(3, 0)], f64::INFINITY);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ChainFile", into = "ChainFile")]
pub struct MarkovChain {
    transitions: Transitions,
}

impl MarkovChain {
    /// A chain whose state `s` leads to the states of `row(s)` with their probabilities.
    pub fn from_fn<Row>(states: usize, row: impl Fn(usize) -> Row) -> Result<Self, Error>
    where
        Row: IntoIterator<Item = (usize, f64)>,
    {
        let name = |state| format!("state {state}");
        Ok(Self { transitions: Transitions::from_rows(states, (0..states).map(row), name)? })
    }

    /// A chain with `p(s' | s)` at `probabilities[s * states + s']`.
    pub fn from_dense(states: usize, probabilities: &[f64]) -> Result<Self, Error> {
        let expected = states.saturating_mul(states);
        if probabilities.len() != expected {
            let found = probabilities.len();
            return Err(Error::Length { what: "transitions".into(), expected, found });
        }
        Self::from_fn(states, |state| dense_row(&probabilities[state * states..][..states]))
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.transitions.states()
    }

    /// The successors of `state` with their probabilities, all positive.
    ///
    /// # Panics
    /// If `state` is not below [`states`](Self::states).
    pub fn successors(&self, state: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone {
        self.transitions.row(state)
    }

    /// The discounted occupancy `p(g | s)` of all pairs (Eq. 2), which counts time 0.
    ///
    /// Every entry is right to about `1e-16` times the number of states of itself, for every
    /// discount; entries below 1e-308 are zero. Time grows with the cube of the number of states.
    pub fn occupancy(&self, discount: Discount) -> AllPairs {
        occupancy::all_pairs(&self.transitions, discount)
    }

    /// The discounted occupancy `p(goal | s)` for every start `s`, in time that grows with the
    /// number of transitions.
    pub fn occupancy_of(&self, goal: usize, discount: Discount) -> Result<Vec<f64>, Error> {
        let values = self.hitting_values(goal, discount)?;
        // p(g | g) = (1 - gamma) + gamma sum_s' p(s' | g) p(g | s'), and p(g | s') = E[gamma^H] p(g | g).
        let returning = self.problem(discount).row_value(goal, &values).to_f64();
        let at_goal = (1.0 - discount.value()) / (1.0 - returning);
        Ok(values.into_iter().map(|value| at_goal * value.to_f64()).collect())
    }

    /// `E[gamma^H]` for every start, where H is the time `goal` is first reached: 1 at the goal,
    /// 0 where it cannot be reached (or where the value is below the range of `f64`).
    pub fn hitting_transforms_to(
        &self,
        goal: usize,
        discount: Discount,
    ) -> Result<Vec<f64>, Error> {
        Ok(self.hitting_values(goal, discount)?.into_iter().map(Wide::to_f64).collect())
    }

    /// The successor distance (Eq. 5) from every state to `goal`: infinite where it cannot be
    /// reached.
    pub fn successor_distances_to(
        &self,
        goal: usize,
        discount: Discount,
    ) -> Result<Vec<f64>, Error> {
        Ok(self.hitting_values(goal, discount)?.into_iter().map(Wide::distance).collect())
    }

    /// The successor distance (Eq. 5) of all pairs. Goals are solved in parallel.
    pub fn successor_distances(&self, discount: Discount) -> Result<AllPairs, Error> {
        all_pairs::of_chain(self.problem(discount))
    }

    /// The fewest transitions of positive probability from every state to `goal`, whatever their
    /// probability: what a quasimetric converges to that is pushed apart under `d(s, s') <= 1`.
    /// `None` where there is no path.
    pub fn hops_to(&self, goal: usize) -> Result<Vec<Option<u32>>, Error> {
        check_index(|| "goal".into(), goal, self.states())?;
        Ok(Predecessors::new(&self.transitions, 1).reaching(goal).hops)
    }

    pub(crate) fn transitions(&self) -> &Transitions {
        &self.transitions
    }

    fn problem(&self, discount: Discount) -> GoalProblem<'_> {
        GoalProblem { transitions: &self.transitions, actions: 1, discount }
    }

    fn hitting_values(&self, goal: usize, discount: Discount) -> Result<Vec<Wide>, Error> {
        check_index(|| "goal".into(), goal, self.states())?;
        let reaching = Predecessors::new(&self.transitions, 1).reaching(goal);
        self.problem(discount).solve(&reaching)
    }
}

/// A chain is a controlled process with one action.
impl From<MarkovChain> for ControlledProcess {
    fn from(chain: MarkovChain) -> Self {
        Self::from_transitions(chain.transitions, 1)
    }
}
