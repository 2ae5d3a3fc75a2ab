//! What the paper argues against, each with the smallest process that shows it.

mod common;

use cm_envs::tabular::{AllPairs, ControlledProcess, Discount, MarkovChain};
use common::{assert_close, gamma};

/// State 0 leads to the absorbing state 1.
fn two_states() -> MarkovChain {
    MarkovChain::from_dense(2, &[0.0, 1.0, 0.0, 1.0]).unwrap()
}

/// `-log p(g | s) / p(g)`, the critic that contrastive learning finds, negated, with `p(g)` the
/// marginal over uniform starts (the equation marked "not a quasimetric").
fn negated_critic(occupancy: &AllPairs, start: usize, goal: usize) -> f64 {
    let to_goal = occupancy.to_goal(goal);
    let marginal = to_goal.iter().sum::<f64>() / to_goal.len() as f64;
    (marginal / to_goal[start]).ln()
}

/// A one-state process has p = 1 and breaks nothing; two states are enough.
#[test]
fn the_logarithm_of_the_occupancy_breaks_identity() {
    let discount = gamma(0.9);
    let occupancy = two_states().occupancy(discount);
    // -log p(0 | 0) = -log(1 - gamma), not 0.
    assert_close(-occupancy[(0, 0)].ln(), 10.0_f64.ln(), 1e-12);
    // The critic's p(0) is half of p(0 | 0): the state is at a negative "distance" from itself.
    assert_close(negated_critic(&occupancy, 0, 0), 0.5_f64.ln(), 1e-12);
    // The change of variables d(s, g) - d(g, g) repairs both, and makes them the same.
    let d = two_states().successor_distances(discount).unwrap();
    assert_eq!((d[(0, 0)], d[(1, 1)]), (0.0, 0.0));
    let changed = negated_critic(&occupancy, 0, 1) - negated_critic(&occupancy, 1, 1);
    assert_close(changed, d[(0, 1)], 1e-12);
    assert_close(occupancy[(1, 1)].ln() - occupancy[(0, 1)].ln(), d[(0, 1)], 1e-12);
}

/// With `w = s` already two states break it; here three different ones do (the paper's first
/// example).
#[test]
fn the_critic_without_the_change_of_variables_breaks_the_triangle_inequality() {
    let discount = gamma(0.9);
    let two = two_states().occupancy(discount);
    let f = |s, g| negated_critic(&two, s, g);
    assert!(f(0, 1) > f(0, 0) + f(0, 1) + 0.1);

    let chain = MarkovChain::from_fn(3, |state| [((state + 1).min(2), 1.0)]).unwrap();
    let three = chain.occupancy(discount);
    let f = |s, g| negated_critic(&three, s, g);
    // The path is certain, so the gap is log p(w | w) / p(w) = log 3 / (1 + gamma).
    assert_close(f(0, 2) - f(0, 1) - f(1, 2), (3.0_f64 / 1.9).ln(), 1e-12);
    let d = chain.successor_distances(discount).unwrap();
    assert_close(d[(0, 2)], d[(0, 1)] + d[(1, 2)], 1e-12);
}

/// States: 0 succeeds at once but rarely (and tries again), 1 leads to 2 leads to the goal 3,
/// surely.
fn risky_and_safe(chance: f64) -> MarkovChain {
    MarkovChain::from_fn(4, |state| match state {
        0 => vec![(3, chance), (0, 1.0 - chance)],
        _ => vec![((state + 1).min(3), 1.0)],
    })
    .unwrap()
}

/// The least path length over observed transitions, what a quasimetric pushed apart under d(s, s')
/// <= 1 converges to, does not see risk; the successor distance does.
#[test]
fn the_best_case_path_length_prefers_a_state_that_rarely_succeeds() {
    let chain = risky_and_safe(0.01);
    let hops = chain.hops_to(3).unwrap();
    assert!(hops[0] < hops[1], "the path length calls the risky state nearer: {hops:?}");
    let discount = gamma(0.9);
    let d = chain.successor_distances_to(3, discount).unwrap();
    assert!(d[0] > d[1], "the successor distance calls it farther: {d:?}");
    // E[gamma^H] = p gamma / (1 - (1 - p) gamma).
    assert_close(d[0], -(0.009_f64 / (1.0 - 0.891)).ln(), 1e-12);
    assert_close(d[1], 2.0 * discount.step_length(), 1e-12);
    // The path length stays the same however rare success is; the successor distance grows without
    // bound.
    let rarer = risky_and_safe(1e-9);
    assert_eq!(rarer.hops_to(3).unwrap(), hops);
    assert!(rarer.successor_distances_to(3, discount).unwrap()[0] > 18.0);
}

/// The same as a choice: a shortcut that mostly ends in a trap against a sure detour.
#[test]
fn following_the_path_length_takes_the_risk_and_the_successor_distance_does_not() {
    let (start, detour, goal, trap) = (0, 1, 2, 3);
    let process = ControlledProcess::from_fn(4, 2, |state, action| match (state, action) {
        (0, 0) => vec![(goal, 0.05), (trap, 0.95)],
        (0, 1) => vec![(detour, 1.0)],
        (1, _) => vec![(goal, 1.0)],
        _ => vec![(state, 1.0)],
    })
    .unwrap();
    let hops = process.hops_to(goal).unwrap();
    let best_case =
        |action| process.successors(start, action).filter_map(|(next, _)| hops[next]).min();
    assert!(best_case(0) < best_case(1));
    for value in [0.5, 0.9, 0.99] {
        let discount: Discount = gamma(value);
        let reaching = process.reach(goal, discount).unwrap();
        assert_eq!(reaching.greedy_actions()[start], 1);
        assert_close(reaching.action_distance(start, 0), -(0.05 * value).ln(), 1e-12);
        assert_close(reaching.distances()[start], -2.0 * value.ln(), 1e-12);
        assert_eq!(reaching.distances()[trap], f64::INFINITY);
    }
    // Impatient enough, the gamble is worth it.
    assert_eq!(process.reach(goal, gamma(0.04)).unwrap().greedy_actions()[start], 0);
}
