//! Discounted occupancy of all pairs: `p(g | s) = (1 - gamma) [(I - gamma P)^-1]_{s g}` (Eq. 2).

use rayon::prelude::*;

use super::discount::Discount;
use super::elimination::Factors;
use super::pairs::AllPairs;
use super::transitions::Transitions;

/// Goals solved together: enough for matrix products, few enough to share among threads.
const GOALS_AT_ONCE: usize = 64;

/// `p(g | s)` for the chain `transitions`. However small an entry is, it is right to about the
/// number of states times `1e-16` of itself, for every discount; impossible pairs give exact zeros.
pub(crate) fn all_pairs(transitions: &Transitions, discount: Discount) -> AllPairs {
    let states = transitions.states();
    let mut entries = vec![0.0; states * states];
    for (state, row) in entries.chunks_exact_mut(states).enumerate() {
        for (next, probability) in transitions.row(state) {
            row[next] = discount.value() * probability;
        }
    }
    let excess = 1.0 - discount.value();
    let factors = Factors::new(states, entries, excess);
    let mut values = vec![0.0; states * states];
    values.par_chunks_mut(GOALS_AT_ONCE * states).enumerate().for_each(|(block, values)| {
        let count = values.len() / states;
        let solution = factors.solve(block * GOALS_AT_ONCE, count, excess);
        for (goal, values) in values.chunks_exact_mut(states).enumerate() {
            for (value, &solution) in values.iter_mut().zip(solution[goal..].iter().step_by(count))
            {
                *value = solution;
            }
        }
    });
    AllPairs::new(states, values)
}
