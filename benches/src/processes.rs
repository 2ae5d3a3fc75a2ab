//! Tabular processes of three kinds and any size, and value iteration as the baseline of the exact
//! solver.

use cm_envs::tabular::{ControlledProcess, MarkovChain};

/// The kinds, by name: a random graph mixes fast, a grid slowly, a ring has far goals.
pub const KINDS: [(&str, fn(usize) -> ControlledProcess); 3] =
    [("random graph", random_graph), ("slippery grid", slippery_grid), ("ring", ring)];

/// Five random successors of each of `states` states, one action.
pub fn random_graph(states: usize) -> ControlledProcess {
    random(states, |_, draw| draw % states)
}

/// Five random successors at most 20 away on a ring of `states` states, one action.
pub fn ring(states: usize) -> ControlledProcess {
    random(states, |state, draw| (state + states - 20 + draw % 41) % states)
}

/// A square of about `states` cells with four moves that slip aside with probability 0.2, and
/// staying.
pub fn slippery_grid(states: usize) -> ControlledProcess {
    let side = states.isqrt();
    let process = ControlledProcess::from_fn(side * side, 5, |state, action| {
        let (x, y) = (state % side, state / side);
        let moved = |direction: usize| match direction % 4 {
            0 => y * side + (x + 1).min(side - 1),
            1 => (y + 1).min(side - 1) * side + x,
            2 => y * side + x.saturating_sub(1),
            _ => y.saturating_sub(1) * side + x,
        };
        match action {
            4 => vec![(state, 1.0)],
            _ => vec![(moved(action), 0.8), (moved(action + 1), 0.1), (moved(action + 3), 0.1)],
        }
    });
    process.expect("rows are distributions")
}

/// The same rows as a chain; the first action of each state.
pub fn chain(process: &ControlledProcess) -> MarkovChain {
    MarkovChain::from_fn(process.states(), |state| process.successors(state, 0))
        .expect("rows are distributions")
}

/// `E[gamma^H]` by sweeps of value iteration until no entry changes by more than 1e-12 of itself:
/// what one would write without this workspace. (It underflows where goals are far.)
pub fn value_iteration(process: &ControlledProcess, goal: usize, discount: f64) -> Vec<f64> {
    let mut values = vec![0.0; process.states()];
    values[goal] = 1.0;
    loop {
        let mut largest: f64 = 0.0;
        for state in (0..process.states()).filter(|&state| state != goal) {
            let best = (0..process.actions())
                .map(|action| {
                    process.successors(state, action).map(|(next, p)| p * values[next]).sum()
                })
                .fold(0.0, f64::max);
            let value = discount * best;
            if value > 0.0 {
                largest = largest.max((value - values[state]).abs() / value);
            }
            values[state] = value;
        }
        if largest <= 1e-12 {
            return values;
        }
    }
}

fn random(states: usize, successor: impl Fn(usize, usize) -> usize) -> ControlledProcess {
    let draws = crate::numbers(17, states * 10);
    let process = ControlledProcess::from_fn(states, 1, |state, _| {
        let draws = &draws[state * 10..][..10];
        let weight = |k: usize| f64::from(draws[k]) * 0.475 + 0.525;
        let sum: f64 = (0..5).map(weight).sum();
        // Eight million different numbers, scattered over the states.
        let word =
            |k: usize| ((f64::from(draws[5 + k]) + 1.0) * 4_194_304.0) as usize * 2_654_435_761;
        let row = (0..5).map(|k| (successor(state, word(k) >> 8), weight(k) / sum));
        row.collect::<Vec<_>>()
    });
    process.expect("rows are distributions")
}
