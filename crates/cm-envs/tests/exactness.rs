//! Exact answers against brute force, sampling and closed forms, where numbers are hardest.

mod common;

use cm_envs::tabular::{ControlledProcess, MarkovChain, Policy, Sampling, Start};
use common::{assert_close, deterministic_policies, discounts, gamma, processes};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Eq. 4 and Eq. 6: the minimum over every deterministic policy of log p(g | g) / p(g | s), on
    /// states and on states and actions.
    #[test]
    fn controlled_distances_are_the_minimum_over_all_deterministic_policies(
        ((process, _), discount) in (processes(4, 3), discounts())
    ) {
        let (states, actions) = (process.states(), process.actions());
        let pairs = states * actions;
        let mut best = vec![f64::INFINITY; states * states];
        let mut best_with_actions = vec![f64::INFINITY; pairs * pairs];
        for policy in deterministic_policies(states, actions) {
            let d = process.under(&policy).unwrap().successor_distances(discount).unwrap();
            for (index, best) in best.iter_mut().enumerate() {
                *best = best.min(d[(index / states, index % states)]);
            }
            let p = process.occupancy_with_actions(&policy, discount).unwrap();
            for (index, best) in best_with_actions.iter_mut().enumerate() {
                let (start, goal) = (index / pairs, index % pairs);
                *best = best.min((p[(goal, goal)] / p[(start, goal)]).ln());
            }
        }
        for goal in 0..states {
            let reaching = process.reach(goal, discount).unwrap();
            let attained = process.under(&reaching.policy().unwrap()).unwrap();
            let attained = attained.successor_distances_to(goal, discount).unwrap();
            for start in 0..states {
                assert_close(reaching.distances()[start], best[start * states + goal], 1e-9);
                assert_close(attained[start], best[start * states + goal], 1e-9);
            }
            for pair in 0..pairs {
                for goal_action in 0..actions {
                    assert_close(
                        reaching.pair_distance((pair / actions, pair % actions), goal_action),
                        best_with_actions[pair * pairs + goal * actions + goal_action],
                        1e-9,
                    );
                }
            }
        }
    }

    /// Eq. 1: the optimal value is attained by the policy returned, at the goal too.
    #[test]
    fn the_policy_attains_the_optimal_goal_value(((process, _), discount) in (processes(5, 3), discounts())) {
        for goal in 0..process.states() {
            let reaching = process.reach(goal, discount).unwrap();
            let chain = process.under(&reaching.policy().unwrap()).unwrap();
            let attained = chain.occupancy_of(goal, discount).unwrap();
            for (value, attained) in reaching.goal_values().into_iter().zip(attained) {
                assert_close(value, attained, 1e-9);
            }
        }
    }
}

/// p(g | s) is the law of the state at a geometric time: the frequency over sampled trajectories
/// agrees within five standard errors.
#[test]
fn occupancy_agrees_with_sampled_trajectories() {
    let rows = [
        0.1, 0.6, 0.3, 0.0, 0.5, 0.5, 0.25, 0.0, 0.75, 0.9, 0.1, 0.0, 0.2, 0.2, 0.6, 1.0, 0.0, 0.0,
    ];
    let process = ControlledProcess::from_dense(3, 2, &rows).unwrap();
    let policy = Policy::from_dense(2, &[0.3, 0.7, 1.0, 0.0, 0.5, 0.5]).unwrap();
    let discount = gamma(0.8);
    let exact = process.occupancy_with_actions(&policy, discount).unwrap();
    let state_occupancy = process.under(&policy).unwrap().occupancy(discount);
    let start = Start::Distribution(vec![0.0, 1.0, 0.0]);
    let sampling = Sampling { start, trajectories: 40_000, steps: 120, seed: 5 };
    let trajectories = sampling.sample(&process, &policy).unwrap();
    // One state at time K per trajectory: K = the number of sixths before the discount ends.
    let geometric = Sampling { start: Start::State(0), trajectories: 40_000, steps: 119, seed: 6 };
    let clock = MarkovChain::from_dense(2, &[0.8, 0.2, 0.0, 1.0]).unwrap();
    let clock = ControlledProcess::from(clock);
    let clocks = geometric.sample(&clock, &Policy::uniform(2, 1).unwrap()).unwrap();
    let mut counts = [[0_u32; 3]; 2];
    let mut starts = [0_u32; 2];
    let mut of_states = [0_u32; 3];
    for (trajectory, clock) in trajectories.iter().zip(clocks) {
        let time = clock.states.iter().filter(|&&state| state == 0).count() - 1;
        assert_eq!(trajectory.states[0], 1);
        let first = trajectory.actions[0] as usize;
        starts[first] += 1;
        counts[first][trajectory.states[time] as usize] += 1;
        of_states[trajectory.states[time] as usize] += 1;
    }
    assert_eq!(starts[1], 0, "the policy never takes action 1 in state 1");
    let total = f64::from(starts[0]);
    for goal in 0..3 {
        let expected: f64 = (0..2).map(|a| exact[(2, goal * 2 + a)]).sum();
        assert_close(expected, state_occupancy[(1, goal)], 1e-12);
        let found = f64::from(counts[0][goal]) / total;
        let error = (expected * (1.0 - expected) / total).sqrt();
        assert!((found - expected).abs() < 5.0 * error, "{found} and {expected}, error {error}");
        assert_eq!(counts[0][goal], of_states[goal]);
    }
}

/// gamma^H of a goal 30,000 steps away is about 10^-1373; the distance is an ordinary number.
#[test]
fn far_goals_do_not_underflow() {
    let states = 30_001;
    let line = MarkovChain::from_fn(states, |state| [((state + 1).min(states - 1), 1.0)]).unwrap();
    let discount = gamma(0.9);
    let d = line.successor_distances_to(states - 1, discount).unwrap();
    for (state, distance) in d.into_iter().enumerate() {
        assert_close(distance, (states - 1 - state) as f64 * discount.step_length(), 1e-12);
    }
    let transforms = line.hitting_transforms_to(states - 1, discount).unwrap();
    assert_eq!(transforms[0], 0.0);
    assert_close(transforms[states - 2], 0.9, 1e-15);
}

/// All pairs of a line long enough that the occupancy underflows, one way only: large numbers and
/// infinities, no NaN.
#[test]
fn all_pairs_survive_an_occupancy_that_underflows() {
    let states = 400;
    let discount = gamma(0.1);
    let line = MarkovChain::from_fn(states, |state| [((state + 1).min(states - 1), 1.0)]).unwrap();
    let d = line.successor_distances(discount).unwrap();
    assert_eq!(line.occupancy(discount)[(0, states - 1)], 0.0);
    for goal in 0..states {
        for start in 0..states {
            let steps = if start <= goal { (goal - start) as f64 } else { f64::INFINITY };
            assert_close(d[(start, goal)], steps * discount.step_length(), 1e-12);
        }
    }
}

/// A walk that almost never goes the right way. With p up and q down, E[gamma^H] over n steps up is
/// r^n with r the root of gamma p = r - gamma q r^2 below 1 (no lower end).
#[test]
fn rare_events_keep_their_relative_precision() {
    let (states, up) = (600, 1e-3);
    let chain = MarkovChain::from_fn(states, |state| match state {
        0 => vec![(0, 1.0 - up), (1, up)],
        599 => vec![(599, 1.0)],
        _ => vec![(state - 1, 1.0 - up), (state + 1, up)],
    })
    .unwrap();
    let (value, down) = (0.97, 1.0 - up);
    let discount = gamma(value);
    // The recurrence u(s) = gamma (p u(s + 1) + q u(s - 1)) gives the ratios r_s = u(s) / u(s + 1)
    // exactly.
    let mut ratios = vec![value * up / (1.0 - value * down)];
    for state in 1..states - 1 {
        ratios.push(value * up / (1.0 - value * down * ratios[state - 1]));
    }
    let d = chain.successor_distances(discount).unwrap();
    let single = chain.successor_distances_to(states - 1, discount).unwrap();
    for start in 0..states {
        let exact: f64 = -ratios[start..].iter().map(|ratio| ratio.ln()).sum::<f64>();
        assert_close(single[start], exact, 1e-11);
        assert_close(d[(start, states - 1)], exact, 1e-11);
    }
    assert!(single[0] > 700.0, "the test is meant to leave the range of f64: {}", single[0]);
}

/// A discount very near 1, and a goal that is only reached through a state that is nearly a trap.
#[test]
fn discounts_near_one_are_solved() {
    let chain = MarkovChain::from_fn(3, |state| match state {
        0 => vec![(0, 1.0 - 1e-6), (1, 1e-6)],
        1 => vec![(0, 0.5), (2, 0.5)],
        _ => vec![(2, 1.0)],
    })
    .unwrap();
    for value in [0.999_999, 0.999_999_99] {
        let discount = gamma(value);
        // u1 = gamma (u0 + 1) / 2 and u0 = gamma (1e-6 u1 + (1 - 1e-6) u0).
        let (one_minus, out) = (1.0 - value, value * 1e-6);
        let leave = out / (one_minus + out);
        let u0 = leave * value / (2.0 - leave * value);
        let d = chain.successor_distances_to(2, discount).unwrap();
        assert_close(d[0], -u0.ln(), 1e-8);
    }
}

/// Large, sparse and controlled: the answer solves its own equation and does not depend on the
/// number of threads.
#[test]
fn a_large_slippery_torus_satisfies_the_fixed_point() {
    let side = 60;
    let process = ControlledProcess::from_fn(side * side, 4, |state, action| {
        let (x, y) = (state % side, state / side);
        let moved = |direction: usize| {
            let (dx, dy) = [(1, 0), (0, 1), (side - 1, 0), (0, side - 1)][direction % 4];
            (y + dy) % side * side + (x + dx) % side
        };
        [(moved(action), 0.8), (moved(action + 1), 0.1), (moved(action + 3), 0.1)]
    })
    .unwrap();
    let discount = gamma(0.99);
    let d = process.reach(0, discount).unwrap().distances().to_vec();
    for state in 1..process.states() {
        let best = (0..4)
            .map(|action| {
                process.successors(state, action).map(|(next, p)| p * (-d[next]).exp()).sum::<f64>()
            })
            .fold(0.0, f64::max);
        assert_close((-d[state]).exp(), 0.99 * best, 1e-11);
    }
    // The torus looks the same in all four directions.
    assert_close(d[1], d[side], 1e-11);
    assert_close(d[1], d[side - 1], 1e-11);
}

/// A random walk in a random landscape on a ring: the goal is hundreds of nats away, and the
/// distances solve `d(s) = log(1/gamma) - log sum_s' p(s' | s) exp(-d(s'))`.
#[test]
fn far_goals_on_a_rough_ring_satisfy_the_fixed_point() {
    let states = 8_000_usize;
    let chain = MarkovChain::from_fn(states, |state| {
        let row = (0..5_usize).map(|k| {
            let draw = (state * 5 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let next = (state + states - 20 + draw % 41) % states;
            (next, (draw / 41 % 1000 + 50) as f64)
        });
        let row: Vec<_> = row.collect();
        let sum: f64 = row.iter().map(|entry| entry.1).sum();
        row.into_iter().map(|(next, weight)| (next, weight / sum)).collect::<Vec<_>>()
    })
    .unwrap();
    let discount = gamma(0.99);
    let d = chain.successor_distances_to(0, discount).unwrap();
    assert!(d[states / 2] > 40.0, "{}", d[states / 2]);
    for state in 1..states {
        let nearest =
            chain.successors(state).map(|(next, _)| d[next]).fold(f64::INFINITY, f64::min);
        let sum: f64 = chain.successors(state).map(|(next, p)| p * (nearest - d[next]).exp()).sum();
        assert_close(d[state], discount.step_length() + nearest - sum.ln(), 1e-12);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let states = 150;
    let row = |state: usize| {
        (1..=4).map(move |k| ((state * 7 + k * k * 11) % states, [0.1, 0.2, 0.3, 0.4][k - 1]))
    };
    let chain = MarkovChain::from_fn(states, row).unwrap();
    let process = ControlledProcess::from_fn(states, 2, |s, a| {
        row(s + a).map(move |(next, p)| ((next + s) % states, p))
    })
    .unwrap();
    let sampling = Sampling { start: Start::Uniform, trajectories: 200, steps: 50, seed: 3 };
    let policy = Policy::uniform(states, 2).unwrap();
    let compute = || {
        (
            chain.successor_distances(gamma(0.95)).unwrap(),
            chain.occupancy(gamma(0.95)),
            process.successor_distances(gamma(0.95)).unwrap(),
            sampling.sample(&process, &policy).unwrap(),
        )
    };
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    assert_eq!(pool(1).install(compute), pool(5).install(compute));
}

/// The same seed gives the same trajectories, and more of them only adds to them; every step is
/// possible.
#[test]
fn sampling_is_seeded() {
    let process = ControlledProcess::from_fn(20, 3, |s, a| {
        [((s * 3 + a) % 20, 0.5), ((s + 7 * a + 1) % 20, 0.5)]
    });
    let process = process.unwrap();
    let policy = Policy::uniform(20, 3).unwrap();
    let sample = |trajectories, seed| {
        Sampling { start: Start::Uniform, trajectories, steps: 30, seed }
            .sample(&process, &policy)
            .unwrap()
    };
    let (few, many, other) = (sample(5, 9), sample(50, 9), sample(5, 10));
    assert_eq!(few, many[..5]);
    assert_ne!(few, other);
    for trajectory in many {
        assert_eq!((trajectory.states.len(), trajectory.actions.len()), (31, 30));
        for (step, &action) in trajectory.states.windows(2).zip(&trajectory.actions) {
            let mut successors = process.successors(step[0] as usize, action as usize);
            assert!(successors.any(|(next, _)| next == step[1] as usize));
        }
    }
}
