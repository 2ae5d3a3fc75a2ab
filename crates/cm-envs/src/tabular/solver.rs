//! The best achievable `E[gamma^H]` of one goal, by policy iteration.
//!
//! By the hitting-time lemma (`thm:hitting_time`) the ratio in the successor distance (Eq. 4) is `E[gamma^H]`, and
//! its maximum `U` over policies is the fixed point
//!
//! ```text
//! U(g) = 1,   U(s) = max_a gamma sum_s' p(s' | s, a) U(s')   for s != g.
//! ```
//!
//! A round sweeps over the states outwards from the goal (Gauss-Seidel value iteration), then evaluates
//! the greedy policy: with `U = U_old w`, the unknown `w` is near 1 everywhere, its equation has the
//! coefficients `gamma p(s' | s) U_old(s') / U_old(s)` that neither under- nor overflow, and
//! BiCGSTAB converges in a number of steps that hardly grows with the number of states.
//!
//! A relative change of at most `epsilon` in a sweep bounds the error of a distance `d` by `epsilon`
//! times the mean hitting time under the paths weighted by `gamma^H`, which is at most
//! `d / log(1/gamma)` because a relative entropy is not negative.

use super::discount::Discount;
use super::krylov::FixedPoint;
use super::reach::Reaching;
use super::transitions::Transitions;
use super::wide::{Sum, Wide};
use crate::Error;

/// Relative error of a distance that a sweep's change must guarantee, where rounding allows it.
const RELATIVE_ERROR: f64 = 1e-12;
/// A change this small is rounding.
const ROUNDING: f64 = 32.0 * f64::EPSILON;
const MAX_ROUNDS: usize = 200;
/// Sweeps go on as long as each leaves less than this part of the change before it.
const WORTH_SWEEPING: f64 = 0.3;

/// Row `state * actions + action` of `transitions` is `p(. | state, action)`.
#[derive(Clone, Copy)]
pub(crate) struct GoalProblem<'a> {
    pub(crate) transitions: &'a Transitions,
    pub(crate) actions: usize,
    pub(crate) discount: Discount,
}

impl GoalProblem<'_> {
    /// `U`, zero where the goal cannot be reached.
    pub(crate) fn solve(&self, reaching: &Reaching) -> Result<Vec<Wide>, Error> {
        let goal = reaching.order[0] as usize;
        let mut values = vec![Wide::ZERO; self.transitions.states()];
        values[goal] = Wide::ONE;
        let mut greedy = vec![0; values.len()];
        let tolerance = (RELATIVE_ERROR * self.discount.step_length()).max(ROUNDING);
        let mut fewest_sweeps = 4;
        let mut change = f64::INFINITY;
        for _ in 0..MAX_ROUNDS {
            for sweep in 1.. {
                let before = change;
                change = self.sweep(reaching, &mut values, &mut greedy);
                if change <= tolerance {
                    return Ok(values);
                }
                if sweep >= fewest_sweeps && change > WORTH_SWEEPING * before {
                    break;
                }
            }
            // With one action the evaluation is the answer, so it is worth more precision.
            let reduction = if self.actions == 1 { 1e-8 } else { 1e-4 };
            match self.evaluation(reaching, &values, &greedy).solve_from_one(reduction) {
                Some(factors) => {
                    for (&state, factor) in reaching.order[1..].iter().zip(factors) {
                        let value = &mut values[state as usize];
                        *value = *value * Wide::new(factor);
                    }
                }
                // Sweeps alone always converge, only more slowly.
                None => fewest_sweeps = (2 * fewest_sweeps).min(4096),
            }
        }
        Err(Error::NotConverged { goal, tolerance, found: change, rounds: MAX_ROUNDS })
    }

    /// `gamma sum_s' p(s' | row) U(s')`: `E[gamma^H]` of `row` when the best is done afterwards.
    pub(crate) fn row_value(&self, row: usize, values: &[Wide]) -> Wide {
        let mut sum = Sum::ZERO;
        for (next, probability) in self.transitions.row(row) {
            sum += (probability, values[next]);
        }
        sum.value() * Wide::new(self.discount.value())
    }

    /// Improves each state once, nearest to the goal first. The largest relative change.
    fn sweep(&self, reaching: &Reaching, values: &mut [Wide], greedy: &mut [u32]) -> f64 {
        let mut largest: f64 = 0.0;
        for &state in &reaching.order[1..] {
            let state = state as usize;
            let mut best = Wide::ZERO;
            for action in 0..self.actions {
                let value = self.value_but_for_staying(state, action, values);
                if value > best {
                    best = value;
                    greedy[state] = action as u32;
                }
            }
            let old = std::mem::replace(&mut values[state], best);
            let change = if old.is_zero() { f64::INFINITY } else { (best.ratio(old) - 1.0).abs() };
            largest = largest.max(change);
        }
        largest
    }

    /// `v = gamma (p(s | s, a) v + sum_{s' != s} p(s' | s, a) U(s'))`, solved for `v`.
    fn value_but_for_staying(&self, state: usize, action: usize, values: &[Wide]) -> Wide {
        let (mut sum, mut staying) = (Sum::ZERO, 0.0);
        for (next, probability) in self.transitions.row(state * self.actions + action) {
            if next == state {
                staying = probability;
            } else {
                sum += (probability, values[next]);
            }
        }
        sum.value() * self.leaving_factor(staying)
    }

    /// `gamma / (1 - gamma p(s | s, a))`.
    fn leaving_factor(&self, staying: f64) -> Wide {
        let discount = self.discount.value();
        Wide::new(discount) * Wide::new(1.0 / (1.0 - discount * staying))
    }

    /// The equation of the factors `w` for a policy, over the states of `reaching.order` but the goal.
    fn evaluation(&self, reaching: &Reaching, values: &[Wide], policy: &[u32]) -> FixedPoint {
        let mut position = vec![u32::MAX; values.len()];
        for (index, &state) in reaching.order[1..].iter().enumerate() {
            position[state as usize] = index as u32;
        }
        let goal = reaching.order[0] as usize;
        let mut equation = FixedPoint {
            starts: vec![0],
            columns: Vec::new(),
            coefficients: Vec::new(),
            constants: Vec::with_capacity(reaching.order.len() - 1),
        };
        for &state in &reaching.order[1..] {
            let state = state as usize;
            let row = self.transitions.row(state * self.actions + policy[state] as usize);
            let staying = row.clone().find(|&(next, _)| next == state).map_or(0.0, |entry| entry.1);
            let leaving = self.leaving_factor(staying);
            let mut constant = 0.0;
            for (next, probability) in row {
                let coefficient = probability * (leaving * values[next]).ratio(values[state]);
                if next == goal {
                    constant = coefficient;
                } else if next != state && coefficient > 0.0 {
                    equation.columns.push(position[next]);
                    equation.coefficients.push(coefficient);
                }
            }
            equation.constants.push(constant);
            equation.starts.push(equation.columns.len());
        }
        equation
    }
}
