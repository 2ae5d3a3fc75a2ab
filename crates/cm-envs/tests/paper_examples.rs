//! The worked examples of the paper (`app:examples`) and its special case of hitting times, as
//! numbers.

mod common;

use cm_envs::tabular::{ControlledProcess, MarkovChain};
use common::{assert_close, gamma};

const DISCOUNTS: [f64; 6] = [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999];

/// 1 -> 2 -> 3, with 3 absorbing. The paper's state k is state k - 1.
#[test]
fn example_1_is_tight() {
    let chain = MarkovChain::from_fn(3, |state| [((state + 1).min(2), 1.0)]).unwrap();
    for value in DISCOUNTS {
        let discount = gamma(value);
        let p = chain.occupancy(discount);
        assert_close(p[(2, 2)], 1.0, 1e-14);
        assert_close(p[(1, 1)], 1.0 - value, 1e-14);
        assert_close(p[(0, 1)], value * (1.0 - value), 1e-14);
        assert_close(p[(1, 2)], value, 1e-14);
        assert_close(p[(0, 2)], value * value, 1e-14);

        let d = chain.successor_distances(discount).unwrap();
        let step = (1.0 / value).ln();
        assert_close(d[(0, 2)], 2.0 * step, 1e-13);
        assert_close(d[(0, 1)], step, 1e-13);
        assert_close(d[(1, 2)], step, 1e-13);
        assert_close(d[(0, 1)] + d[(1, 2)], d[(0, 2)], 1e-13);
        assert_eq!(d[(2, 0)], f64::INFINITY);
    }
}

/// 1 -> {2, 3} with probability 1/2 each -> 4, absorbing.
#[test]
fn example_2_is_loose_by_log_2() {
    let chain = MarkovChain::from_fn(4, |state| match state {
        0 => vec![(1, 0.5), (2, 0.5)],
        _ => vec![(3, 1.0)],
    })
    .unwrap();
    for value in DISCOUNTS {
        let discount = gamma(value);
        let p = chain.occupancy(discount);
        assert_close(p[(3, 3)], 1.0, 1e-14);
        assert_close(p[(1, 1)], 1.0 - value, 1e-14);
        assert_close(p[(0, 1)], 0.5 * (1.0 - value) * value, 1e-14);
        assert_close(p[(0, 3)], value * value, 1e-14);
        assert_close(p[(1, 3)], value, 1e-14);

        let d = chain.successor_distances(discount).unwrap();
        let step = (1.0 / value).ln();
        assert_close(d[(0, 1)], step + 2.0_f64.ln(), 1e-13);
        assert_close(d[(1, 3)], step, 1e-13);
        assert_close(d[(0, 3)], 2.0 * step, 1e-13);
        assert_close(d[(0, 1)] + d[(1, 3)] - d[(0, 3)], 2.0_f64.ln(), 1e-13);
    }
}

/// "Hitting times as a special case": deterministic moves and the choice to stay. The distance is
/// the hitting time times log(1/gamma), and p(g | g) = 1 under the best policy.
#[test]
fn deterministic_processes_that_can_stay_have_hitting_times() {
    // Actions: stay, step, jump by 3 on a ring of 11.
    let ring = ControlledProcess::from_fn(11, 3, |state, action| {
        [((state + [0, 1, 3][action]) % 11, 1.0)]
    })
    .unwrap();
    for value in DISCOUNTS {
        let discount = gamma(value);
        for goal in 0..11 {
            let reaching = ring.reach(goal, discount).unwrap();
            let hops = ring.hops_to(goal).unwrap();
            for (state, &hops) in hops.iter().enumerate() {
                let ahead = (goal + 11 - state) % 11;
                let time = ahead / 3 + ahead % 3;
                assert_eq!(hops, Some(time as u32));
                assert_close(reaching.distances()[state], time as f64 * (1.0 / value).ln(), 1e-12);
                assert_close(reaching.goal_values()[state], value.powi(time as i32), 1e-12);
            }
        }
    }
}
