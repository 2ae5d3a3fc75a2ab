//! Discounted occupancy of all pairs: `p(g | s) = (1 - gamma) [(I - gamma P)^-1]_{s g}` (Eq. 2).
//!
//! What is factored is the transpose of `I - gamma P`. Its columns are strictly diagonally
//! dominant, so partial pivoting never exchanges rows, and off the diagonal every step of the
//! elimination and of the solves adds numbers of one sign. No entry of the result is a difference
//! of larger ones: however small, each is right to about `1e-16 / (1 - gamma)` of itself, and
//! impossible pairs give exact zeros.

use faer::Mat;
use faer::linalg::solvers::SolveCore;
use rayon::prelude::*;

use super::discount::Discount;
use super::pairs::AllPairs;
use super::transitions::Transitions;

/// Goals solved together: enough for matrix products, few enough to share among threads.
const GOALS_AT_ONCE: usize = 64;

/// `p(g | s)` for the chain `transitions`.
pub(crate) fn all_pairs(transitions: &Transitions, discount: Discount) -> AllPairs {
    let states = transitions.states();
    let mut transposed = Mat::<f64>::identity(states, states);
    for state in 0..states {
        for (next, probability) in transitions.row(state) {
            transposed[(next, state)] -= discount.value() * probability;
        }
    }
    let factors = transposed.partial_piv_lu();
    let mut values = vec![0.0; states * states];
    values.par_chunks_mut(GOALS_AT_ONCE * states).enumerate().for_each(|(block, values)| {
        let first = block * GOALS_AT_ONCE;
        let mut solution = Mat::<f64>::zeros(states, values.len() / states);
        for column in 0..solution.ncols() {
            solution[(first + column, column)] = 1.0 - discount.value();
        }
        factors.solve_transpose_in_place_with_conj(faer::Conj::No, solution.as_mut());
        for (column, values) in values.chunks_exact_mut(states).enumerate() {
            for (value, solution) in values.iter_mut().zip(solution.col(column).iter()) {
                *value = *solution;
            }
        }
    });
    AllPairs::new(states, values)
}
