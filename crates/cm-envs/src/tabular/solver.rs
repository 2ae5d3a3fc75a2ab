//! The largest `E[gamma^H]` of one goal over all policies, whose negative logarithm is the
//! controlled successor distance.
//!
//! By the hitting-time lemma (`thm:hitting_time`) the ratio in the successor distance (Eq. 4) is
//! `E[gamma^H]`. Its maximum over policies is the solution of
//!
//! ```text
//! U(g) = 1,   U(s) = max_a gamma sum_s' p(s' | s, a) U(s')   for s != g.
//! ```
//!
//! With `d = -log U` the right-hand side is
//! `log(1/gamma) + min_a min_q [sum_s' q(s') d(s') + KL(q || p(. | s, a))]` over distributions `q`:
//! a shortest path whose choices are `a` and `q`. Newton's method on it is Howard's policy
//! iteration, monotone from any start and quadratic at the end. The best `q` is the posterior of
//! the next state given that the goal is reached in time, `q(s') = p(s' | s, a) U(s') / sum p U`,
//! and a round solves `(I - q) delta = residual`, whose coefficients are ordinary numbers however
//! far the goal is.
//!
//! A residual of at most `epsilon` bounds the error of `d` by `epsilon` times the mean hitting time
//! under `q`, which is at most `d / log(1/gamma)` because relative entropies are not negative.

use super::discount::Discount;
use super::krylov::{Accuracy, LinearSystem};
use super::reach::Reaching;
use super::transitions::Transitions;
use super::wide::{Sum, Wide};
use crate::Error;

/// Relative error of a distance that the residual must guarantee, where rounding allows it.
const RELATIVE_ERROR: f64 = 1e-11;
/// A residual this small is rounding.
const ROUNDING: f64 = 16.0 * f64::EPSILON;
/// Sweeps before the first round, enough for every state to have heard from its neighbours.
const FIRST_SWEEPS: usize = 3;
const MAX_ROUNDS: usize = 500;
/// A step of `log U` that is wrong by more would spoil the posterior.
const STEP_ERROR: f64 = 1.0;

/// Row `state * actions + action` of `transitions` is `p(. | state, action)`.
#[derive(Clone, Copy)]
pub(crate) struct GoalProblem<'a> {
    pub(crate) transitions: &'a Transitions,
    pub(crate) actions: usize,
    pub(crate) discount: Discount,
}

impl GoalProblem<'_> {
    /// `U` for the goal `reaching.order[0]`, zero where it cannot be reached.
    pub(crate) fn solve(&self, reaching: &Reaching) -> Result<Vec<Wide>, Error> {
        let goal = reaching.order[0] as usize;
        let mut values = vec![Wide::ZERO; self.transitions.states()];
        values[goal] = Wide::ONE;
        let tolerance = (RELATIVE_ERROR * self.discount.step_length()).max(ROUNDING);
        let mut sweeps = FIRST_SWEEPS;
        let mut slow_mixing = false;
        let mut residual = f64::INFINITY;
        for _ in 0..MAX_ROUNDS {
            for _ in 0..sweeps {
                self.sweep(reaching, &mut values);
            }
            let system;
            (system, residual) = self.newton_step(reaching, &values);
            if residual <= tolerance {
                return Ok(values);
            }
            let relative = (0.1 * residual).clamp(1e-6, 1e-2);
            let accuracy = Accuracy { relative, absolute: STEP_ERROR };
            sweeps = match system.solve(accuracy, &mut slow_mixing) {
                Some(step) => {
                    for (&state, step) in reaching.order[1..].iter().zip(step) {
                        let value = &mut values[state as usize];
                        *value = *value * Wide::exp(step);
                    }
                    0
                }
                // Sweeps alone always converge, only more slowly.
                None => (4 * sweeps).clamp(4, 1024),
            };
        }
        Err(Error::NotConverged { goal, found: residual, rounds: MAX_ROUNDS })
    }

    /// `gamma sum_s' p(s' | row) U(s')`: `E[gamma^H]` of a row when the best is done afterwards.
    pub(crate) fn row_value(&self, row: usize, values: &[Wide]) -> Wide {
        let mut sum = Sum::ZERO;
        for (next, probability) in self.transitions.row(row) {
            sum += (probability, values[next]);
        }
        sum.value() * Wide::new(self.discount.value())
    }

    /// Improves each state once, nearest to the goal first.
    fn sweep(&self, reaching: &Reaching, values: &mut [Wide]) {
        for &state in &reaching.order[1..] {
            values[state as usize] = self.best_action(state as usize, values).0;
        }
    }

    /// The largest value over actions and the action that attains it.
    fn best_action(&self, state: usize, values: &[Wide]) -> (Wide, usize) {
        let mut best = (Wide::ZERO, 0);
        for action in 0..self.actions {
            let value = self.value_but_for_staying(state, action, values);
            if value > best.0 {
                best = (value, action);
            }
        }
        best
    }

    /// `U = gamma (p(s | s, a) U + sum_{s' != s} p(s' | s, a) U(s'))`, solved for `U`.
    fn value_but_for_staying(&self, state: usize, action: usize, values: &[Wide]) -> Wide {
        let (mut sum, mut staying) = (Sum::ZERO, 0.0);
        for (next, probability) in self.transitions.row(state * self.actions + action) {
            if next == state {
                staying = probability;
            } else {
                sum += (probability, values[next]);
            }
        }
        let discount = self.discount.value();
        let waiting = if staying > 0.0 { 1.0 - discount * staying } else { 1.0 };
        sum.value() * Wide::new(discount / waiting)
    }

    /// The equation of Newton's step in `log U`, over the states of `reaching.order` but the goal,
    /// and the largest residual.
    fn newton_step(&self, reaching: &Reaching, values: &[Wide]) -> (LinearSystem, f64) {
        let mut position = vec![u32::MAX; values.len()];
        for (index, &state) in reaching.order[1..].iter().enumerate() {
            position[state as usize] = index as u32;
        }
        let goal = reaching.order[0] as usize;
        let mut system = LinearSystem::default();
        let mut largest: f64 = 0.0;
        let mut posterior = Vec::new();
        for &state in &reaching.order[1..] {
            let state = state as usize;
            let (value, action) = self.best_action(state, values);
            let leaving = self
                .transitions
                .row(state * self.actions + action)
                .filter(|&(next, _)| next != state && !values[next].is_zero());
            let mut sum = Sum::ZERO;
            for (next, probability) in leaving.clone() {
                sum += (probability, values[next]);
            }
            let sum = sum.value();
            posterior.clear();
            posterior.extend(
                leaving
                    .filter(|&(next, _)| next != goal)
                    .map(|(next, p)| (position[next], p * values[next].ratio(sum))),
            );
            let residual = value.log_ratio(values[state]);
            system.push_row(&mut posterior, residual);
            largest = largest.max(residual.abs());
        }
        (system, largest)
    }
}
