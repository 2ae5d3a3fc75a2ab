//! The theorems of the paper on thousands of random processes.

mod common;

use cm_envs::tabular::{ControlledProcess, MarkovChain};
use common::{assert_close, assert_quasimetric, chains, discounts, processes};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Corollary `thm:quasimetric_uncontrolled_corollary`, and the hitting-time lemma
    /// `thm:hitting_time`: the occupancy comes from a factorisation, E[gamma^H] from policy
    /// iteration.
    #[test]
    fn chains_have_a_quasimetric_and_the_hitting_time_lemma((chain, discount) in (chains(6), discounts())) {
        let d = chain.successor_distances(discount).unwrap();
        assert_quasimetric(chain.states(), |s, g| d[(s, g)]);
        let p = chain.occupancy(discount);
        for goal in 0..chain.states() {
            let transforms = chain.hitting_transforms_to(goal, discount).unwrap();
            let distances = chain.successor_distances_to(goal, discount).unwrap();
            let occupancy = chain.occupancy_of(goal, discount).unwrap();
            for start in 0..chain.states() {
                assert_close(p[(start, goal)], transforms[start] * p[(goal, goal)], 1e-10);
                assert_close(p[(start, goal)], occupancy[start], 1e-10);
                assert_close(d[(start, goal)], (p[(goal, goal)] / p[(start, goal)]).ln(), 1e-9);
                assert_close(d[(start, goal)], distances[start], 1e-9);
            }
        }
        // Eq. 2 is a distribution over goals.
        for start in 0..chain.states() {
            assert_close(p.from_start(start).sum(), 1.0, 1e-12);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Theorem `thm:quasimetric` for the controlled distance.
    #[test]
    fn controlled_distances_are_a_quasimetric(((process, _), discount) in (processes(6, 3), discounts())) {
        let d = process.successor_distances(discount).unwrap();
        assert_quasimetric(process.states(), |s, g| d[(s, g)]);
        for start in 0..process.states() {
            let row = process.successor_distances_from(start, discount).unwrap();
            prop_assert!(row.into_iter().eq(d.from_start(start)));
        }
    }

    /// Lemma `thm:waypoint`: for any policy, max p(g | w) p(w | s) / p(w | w) <= max p(g | s),
    /// where the maxima are the optimal values of Eq. 1.
    #[test]
    fn waypoint_lemma(((process, policy), discount) in (processes(5, 3), discounts())) {
        let chain = process.under(&policy).unwrap();
        let p = chain.occupancy(discount);
        for goal in 0..process.states() {
            let best = process.reach(goal, discount).unwrap().goal_values();
            for s in 0..process.states() {
                prop_assert!(best[s] >= p[(s, goal)] - 1e-10);
                for w in 0..process.states() {
                    let through = best[w] * p[(s, w)] / p[(w, w)];
                    prop_assert!(through <= best[s] * (1.0 + 1e-9) + 1e-15, "{through} > {}", best[s]);
                }
            }
        }
    }

    /// Lemma `thm:sa_indep` and Corollary `thm:quasimetric_corollary`: on states and actions.
    #[test]
    fn distances_with_actions_are_a_quasimetric(((process, _), discount) in (processes(4, 3), discounts())) {
        let actions = process.actions();
        let goals: Vec<_> =
            (0..process.states()).map(|goal| process.reach(goal, discount).unwrap()).collect();
        let pair = |index: usize| (index / actions, index % actions);
        let d = |x: usize, y: usize| goals[pair(y).0].pair_distance(pair(x), pair(y).1);
        assert_quasimetric(process.states() * actions, d);
        for (goal, reaching) in goals.iter().enumerate() {
            for start in 0..process.states() {
                // The best first action attains the distance without actions.
                let best = (0..actions).map(|a| reaching.action_distance(start, a)).fold(f64::INFINITY, f64::min);
                if start != goal {
                    assert_close(best, reaching.distances()[start], 1e-9);
                    let greedy = reaching.greedy_actions()[start] as usize;
                    assert_close(reaching.action_distance(start, greedy), best, 1e-9);
                }
                for a in 0..actions {
                    for goal_action in 0..actions {
                        if start != goal {
                            prop_assert_eq!(
                                reaching.pair_distance((start, a), goal_action),
                                reaching.action_distance(start, a)
                            );
                        }
                    }
                }
            }
        }
    }

    /// Eq. 3 term by term equals the occupancy of the chain over states and actions, and the
    /// hitting-time lemma with actions, `thm:hitting_time_actions`, holds on it.
    #[test]
    fn occupancy_with_actions_is_that_of_the_chain_of_pairs(((process, policy), discount) in (processes(4, 3), discounts())) {
        let p = process.occupancy_with_actions(&policy, discount).unwrap();
        // The chain over pairs when the policy acts after the first action.
        let actions = process.actions();
        let pairs = MarkovChain::from_fn(process.states() * actions, |pair| {
            let next = process.successors(pair / actions, pair % actions);
            let then = next.flat_map(|(next, p)| {
                (0..actions).map(move |action| (next, action, p))
            });
            then.map(|(next, action, p)| (next * actions + action, p * policy.probability(next, action)))
        }).unwrap();
        let direct = pairs.occupancy(discount);
        for goal in 0..pairs.states() {
            let transforms = pairs.hitting_transforms_to(goal, discount).unwrap();
            for start in 0..pairs.states() {
                assert_close(p[(start, goal)], direct[(start, goal)], 1e-12);
                assert_close(p[(start, goal)], transforms[start] * p[(goal, goal)], 1e-10);
            }
        }
        // Summed over the goal's actions and the first action's choice it is the occupancy over
        // states, Eq. 2.
        let states = process.under(&policy).unwrap().occupancy(discount);
        for start in 0..process.states() {
            for goal in 0..process.states() {
                let sum: f64 = (0..actions * actions)
                    .map(|index| (index / actions, index % actions))
                    .map(|(a, b)| policy.probability(start, a) * p[(start * actions + a, goal * actions + b)])
                    .sum();
                assert_close(sum, states[(start, goal)], 1e-12);
            }
        }
    }

    /// In deterministic processes the distance is the number of hops times log(1/gamma).
    #[test]
    fn deterministic_distances_are_hops(
        (states, next, discount) in (1..9_usize).prop_flat_map(|states| {
            (Just(states), prop::collection::vec(0..states, states * 2), discounts())
        })
    ) {
        let process = ControlledProcess::from_fn(states, 2, |s, a| [(next[2 * s + a], 1.0)]).unwrap();
        for goal in 0..states {
            let hops = process.hops_to(goal).unwrap();
            let reaching = process.reach(goal, discount).unwrap();
            for (hops, &distance) in hops.into_iter().zip(reaching.distances()) {
                let steps = hops.map_or(f64::INFINITY, f64::from);
                assert_close(distance, steps * discount.step_length(), 1e-11);
            }
        }
    }
}
