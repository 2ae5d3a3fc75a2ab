//! Controlled Markov processes.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::chain::MarkovChain;
use super::discount::Discount;
use super::file::ProcessFile;
use super::goal::GoalReaching;
use super::pairs::AllPairs;
use super::policy::Policy;
use super::reach::Predecessors;
use super::solver::GoalProblem;
use super::transitions::{Transitions, dense_row};
use super::{all_pairs, occupancy};
use crate::Error;
use crate::error::check_index;

/// A controlled Markov process over the states `0..states`, with the actions `0..actions` in each.
///
/// ```
/// use cm_envs::tabular::{ControlledProcess, Discount};
///
/// // From state 0 action 0 goes straight to the goal 2 or, more often, to the trap 3; action 1 takes a sure detour.
/// let process = ControlledProcess::from_fn(4, 2, |state, action| match (state, action) {
///     (0, 0) => vec![(2, 0.1), (3, 0.9)],
///     (0, 1) => vec![(1, 1.0)],
///     (1, _) => vec![(2, 1.0)],
///     _ => vec![(state, 1.0)],
/// })?;
/// let reaching = process.reach(2, Discount::new(0.9)?)?;
/// assert_eq!(reaching.greedy_actions()[0], 1);
/// assert!((reaching.distances()[0] - -2.0 * 0.9_f64.ln()).abs() < 1e-12);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ProcessFile", into = "ProcessFile")]
pub struct ControlledProcess {
    /// Row `state * actions + action`.
    transitions: Transitions,
    actions: usize,
}

impl ControlledProcess {
    /// A process in which `action` in `state` leads to the states of `row(state, action)` with
    /// their probabilities.
    pub fn from_fn<Row>(
        states: usize,
        actions: usize,
        row: impl Fn(usize, usize) -> Row,
    ) -> Result<Self, Error>
    where
        Row: IntoIterator<Item = (usize, f64)>,
    {
        if actions == 0 {
            return Err(Error::Empty { what: "actions" });
        }
        let rows = (0..states).flat_map(|state| (0..actions).map(move |action| (state, action)));
        let transitions = Transitions::from_rows(
            states,
            rows.map(|(state, action)| row(state, action)),
            |row| format!("state {}, action {}", row / actions, row % actions),
        )?;
        Ok(Self { transitions, actions })
    }

    /// A process with `p(s' | s, a)` at `probabilities[(s * actions + a) * states + s']`.
    pub fn from_dense(states: usize, actions: usize, probabilities: &[f64]) -> Result<Self, Error> {
        let expected = states.saturating_mul(actions).saturating_mul(states);
        if probabilities.len() != expected {
            let found = probabilities.len();
            return Err(Error::Length { what: "transitions".into(), expected, found });
        }
        Self::from_fn(states, actions, |state, action| {
            dense_row(&probabilities[(state * actions + action) * states..][..states])
        })
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.transitions.states()
    }

    /// Number of actions.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The successors of `action` in `state` with their probabilities, all positive.
    ///
    /// # Panics
    /// If `state` is not below [`states`](Self::states) or `action` not below
    /// [`actions`](Self::actions).
    pub fn successors(
        &self,
        state: usize,
        action: usize,
    ) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone {
        assert!(action < self.actions, "action {action} of {}", self.actions);
        self.transitions.row(state * self.actions + action)
    }

    /// The chain over states when `policy` acts, `p(s' | s) = sum_a pi(a | s) p(s' | s, a)` (Eq.
    /// 2). Its occupancy and distances are those of the policy.
    pub fn under(&self, policy: &Policy) -> Result<MarkovChain, Error> {
        self.check_policy(policy)?;
        MarkovChain::from_fn(self.states(), |state| {
            policy.choices(state).flat_map(move |(action, chosen)| {
                self.successors(state, action).map(move |(next, p)| (next, chosen * p))
            })
        })
    }

    /// The discounted occupancy `p(g, a' | s, a)` of a policy (Eq. 3) for all pairs of pairs,
    /// numbered `state * actions + action`. One factorisation over states, not over pairs.
    pub fn occupancy_with_actions(
        &self,
        policy: &Policy,
        discount: Discount,
    ) -> Result<AllPairs, Error> {
        let occupancy = occupancy::all_pairs(self.under(policy)?.transitions(), discount);
        let (pairs, gamma) = (self.transitions.rows(), discount.value());
        let mut values = vec![0.0; pairs * pairs];
        values.par_chunks_exact_mut(pairs).enumerate().for_each(|(target, values)| {
            let (goal, goal_action) = (target / self.actions, target % self.actions);
            let chosen = policy.probability(goal, goal_action);
            let to_goal = occupancy.to_goal(goal);
            for (pair, value) in values.iter_mut().enumerate() {
                let later: f64 =
                    self.transitions.row(pair).map(|(next, p)| p * to_goal[next]).sum();
                *value = gamma * later * chosen;
            }
            values[target] += 1.0 - gamma;
        });
        Ok(AllPairs::new(pairs, values))
    }

    /// The best that can be done towards `goal`: the controlled successor distance (Eq. 4) from
    /// everywhere, with and without a first action, and the policy that attains it.
    pub fn reach(&self, goal: usize, discount: Discount) -> Result<GoalReaching, Error> {
        check_index(|| "goal".into(), goal, self.states())?;
        let reaching = Predecessors::new(&self.transitions, self.actions).reaching(goal);
        let problem = self.problem(discount);
        Ok(GoalReaching::new(problem, goal, &problem.solve(&reaching)?))
    }

    /// The controlled successor distance (Eq. 4) of all pairs. Goals are solved in parallel.
    pub fn successor_distances(&self, discount: Discount) -> Result<AllPairs, Error> {
        all_pairs::goal_by_goal(self.problem(discount))
    }

    /// The controlled successor distance (Eq. 4) from `start` to every state, in memory for one row
    /// but the time of all pairs, because each goal has its own best policy.
    pub fn successor_distances_from(
        &self,
        start: usize,
        discount: Discount,
    ) -> Result<Vec<f64>, Error> {
        check_index(|| "start".into(), start, self.states())?;
        let predecessors = Predecessors::new(&self.transitions, self.actions);
        let to_goal = |goal| {
            Ok(self.problem(discount).solve(&predecessors.reaching(goal))?[start].distance())
        };
        (0..self.states()).into_par_iter().map(to_goal).collect()
    }

    /// The fewest transitions of positive probability from every state to `goal` under any actions:
    /// what a quasimetric converges to that is pushed apart under `d(s, s') <= 1`. `None` where
    /// there is no path.
    pub fn hops_to(&self, goal: usize) -> Result<Vec<Option<u32>>, Error> {
        check_index(|| "goal".into(), goal, self.states())?;
        Ok(Predecessors::new(&self.transitions, self.actions).reaching(goal).hops)
    }

    pub(crate) fn from_transitions(transitions: Transitions, actions: usize) -> Self {
        Self { transitions, actions }
    }

    pub(crate) fn check_policy(&self, policy: &Policy) -> Result<(), Error> {
        let checks = [
            ("policy, states", self.states(), policy.states()),
            ("policy, actions", self.actions, policy.actions()),
        ];
        for (what, expected, found) in checks {
            if expected != found {
                return Err(Error::Length { what: what.into(), expected, found });
            }
        }
        Ok(())
    }

    fn problem(&self, discount: Discount) -> GoalProblem<'_> {
        GoalProblem { transitions: &self.transitions, actions: self.actions, discount }
    }
}
