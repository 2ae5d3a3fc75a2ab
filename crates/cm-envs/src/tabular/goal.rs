//! What the solver found for one goal.

use super::discount::Discount;
use super::policy::Policy;
use super::process::ControlledProcess;
use super::solver::GoalProblem;
use super::wide::Wide;
use crate::Error;
use crate::error::check_index;

/// The controlled successor distances to one goal and the policy that attains them.
///
/// ```
/// use cm_envs::tabular::{ControlledProcess, Discount};
///
/// // Three states in a ring: action 0 waits, action 1 moves on.
/// let ring = ControlledProcess::from_fn(3, 2, |state, action| [((state + action) % 3, 1.0)])?;
/// let discount = Discount::new(0.5)?;
/// let reaching = ring.reach(2, discount)?;
/// assert_eq!(reaching.distances(), [2.0 * discount.step_length(), discount.step_length(), 0.0]);
/// // Waiting first costs one more step; at the goal the best is to wait.
/// assert_eq!(reaching.action_distance(0, 0), 3.0 * discount.step_length());
/// assert_eq!(reaching.greedy_actions(), [1, 1, 0]);
/// assert_eq!(reaching.greedy_path(&ring, 0)?, Some(vec![0, 1, 2]));
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GoalReaching {
    goal: usize,
    actions: usize,
    distances: Vec<f64>,
    action_distances: Vec<f64>,
    greedy_actions: Vec<u32>,
    value_at_goal: f64,
}

impl GoalReaching {
    /// From the solution `values` of `problem`.
    pub(crate) fn new(problem: GoalProblem<'_>, goal: usize, values: &[Wide]) -> Self {
        let actions = problem.actions;
        let action_values: Vec<Wide> =
            (0..values.len() * actions).map(|row| problem.row_value(row, values)).collect();
        let equally_good = equally_good(problem.discount);
        let greedy_actions: Vec<u32> = action_values
            .chunks_exact(actions)
            .map(|values| first_best(values, equally_good) as u32)
            .collect();
        // Eq. 1 at the goal: V = (1 - gamma) + max_a gamma sum_s' p(s' | g, a) E[gamma^H] V.
        let returning = action_values[goal * actions + greedy_actions[goal] as usize].to_f64();
        let value_at_goal = (1.0 - problem.discount.value()) / (1.0 - returning);
        Self {
            goal,
            actions,
            distances: values.iter().map(|value| value.distance()).collect(),
            action_distances: action_values.into_iter().map(Wide::distance).collect(),
            greedy_actions,
            value_at_goal,
        }
    }

    /// The goal state.
    pub fn goal(&self) -> usize {
        self.goal
    }

    /// The successor distance from every state (Eq. 4): 0 at the goal only, infinite where it
    /// cannot be reached.
    pub fn distances(&self) -> &[f64] {
        &self.distances
    }

    /// `d(s, a, g)`: the successor distance when `action` is taken first in `state` (Eq. 6). It
    /// does not depend on the goal's action (`thm:sa_indep`). At the goal it is the distance of
    /// coming back.
    ///
    /// # Panics
    /// If `state` or `action` does not exist.
    pub fn action_distance(&self, state: usize, action: usize) -> f64 {
        assert!(action < self.actions, "action {action} of {}", self.actions);
        self.action_distances[state * self.actions + action]
    }

    /// `d((s, a), (g, a'))` on states and actions (Eq. 6): 0 for the same pair, else
    /// [`action_distance`](Self::action_distance).
    ///
    /// The best policy takes `a'` on every visit to the goal, so the pair is reached when the goal
    /// is, or from `(g, a)` with another `a` when the goal is reached again.
    ///
    /// # Panics
    /// If `state` or an action does not exist.
    pub fn pair_distance(&self, (state, action): (usize, usize), goal_action: usize) -> f64 {
        assert!(goal_action < self.actions, "action {goal_action} of {}", self.actions);
        let same = (state, action) == (self.goal, goal_action);
        if same { 0.0 } else { self.action_distance(state, action) }
    }

    /// The optimal value of Eq. 1, `V*(s) = max_pi p(g | s)`, for every state.
    pub fn goal_values(&self) -> Vec<f64> {
        self.distances.iter().map(|distance| self.value_at_goal * (-distance).exp()).collect()
    }

    /// The best action in every state, the first of equally good ones. Where the goal
    /// cannot be reached all are equally good.
    pub fn greedy_actions(&self) -> &[u32] {
        &self.greedy_actions
    }

    /// The optimal goal-reaching policy: it attains the distances and, at the goal, the return of
    /// Eq. 1.
    pub fn policy(&self) -> Result<Policy, Error> {
        Policy::deterministic(self.actions, &self.greedy_actions)
    }

    /// The states from `start` to the goal when every step takes the best action and has its best
    /// outcome. `None` where the goal cannot be reached.
    ///
    /// Every step shortens the distance by log(1/gamma) or more, so the path ends.
    pub fn greedy_path(
        &self,
        process: &ControlledProcess,
        start: usize,
    ) -> Result<Option<Vec<usize>>, Error> {
        check_index(|| "start".into(), start, self.distances.len())?;
        if (process.states(), process.actions()) != (self.distances.len(), self.actions) {
            return Err(Error::Length {
                what: "process".into(),
                expected: self.action_distances.len(),
                found: process.states() * process.actions(),
            });
        }
        let mut path = vec![start];
        let mut state = start;
        while state != self.goal {
            let best = process
                .successors(state, self.greedy_actions[state] as usize)
                .map(|(next, _)| next)
                .min_by(|&a, &b| self.distances[a].total_cmp(&self.distances[b]));
            match best {
                Some(next) if self.distances[next] < self.distances[state] => state = next,
                _ => return Ok(None),
            }
            path.push(state);
        }
        Ok(Some(path))
    }
}

/// The part of `E[gamma^H]` by which actions may differ and be called equally good: above the error
/// of the values, so that symmetric choices are made alike everywhere, and well below what one step
/// is worth, so that none leads in a circle.
fn equally_good(discount: Discount) -> f64 {
    (0.01 * (1.0 - discount.value())).min(1e-10)
}

/// The first of the values that are as good as the best.
fn first_best(values: &[Wide], equally_good: f64) -> usize {
    let best =
        values.iter().fold(Wide::ZERO, |best, &value| if value > best { value } else { best });
    let good = |value: &Wide| best.is_zero() || value.ratio(best) >= 1.0 - equally_good;
    values.iter().position(good).unwrap_or(0)
}
