//! CMD-1 and CMD-2 recover the exact successor distance of the behaviour policy from its trajectories, contrastive RL's critic alone does not.

#[path = "../examples/learned_against_exact/study.rs"]
mod study;

use study::{Method, SMALL, studies};

#[test]
fn stochastic_chain() {
    check(0);
}

#[test]
fn slippery_grid_with_a_one_way_door() {
    check(1);
}

#[test]
fn random_process() {
    check(2);
}

fn check(index: usize) {
    let study = &studies().unwrap()[index];
    let [cmd1, cmd2, raw] = Method::ALL.map(|method| study.run(method, &SMALL, 1, |_| ()).unwrap());
    for (name, outcome) in [("CMD-1", &cmd1), ("CMD-2", &cmd2)] {
        let failures = outcome.failures(&raw);
        assert!(failures.is_empty(), "{}, {name}: {failures:?}", study.name);
    }
    // The criteria can fail: the raw critic is no quasimetric.
    assert!(!raw.failures(&cmd1).is_empty());
}
