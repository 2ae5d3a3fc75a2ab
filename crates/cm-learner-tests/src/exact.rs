//! CMD-1 and CMD-2 recover the exact successor distance of the behaviour policy from its
//! trajectories; contrastive RL's critic alone does not.

use cm_nn::Backend;
use cm_nn::testing::Suite;

use crate::study::{Method, SMALL, studies};

/// Trains on one of the [`studies`] and checks rank correlation, mean error and triangles.
pub fn exact_distances<B: Backend>(suite: &Suite<B>, index: usize) {
    let study = &studies().expect("the processes are valid")[index];
    let [cmd1, cmd2, raw] = Method::ALL
        .map(|method| study.run(&suite.make(1), method, &SMALL, 1, |_| ()).expect("it trains"));
    for (name, outcome) in [("CMD-1", &cmd1), ("CMD-2", &cmd2)] {
        let failures = outcome.failures(&raw);
        assert!(failures.is_empty(), "{}, {name}: {failures:?}", study.name);
    }
    // The criteria can fail: the raw critic is no quasimetric.
    assert!(!raw.failures(&cmd1).is_empty());
}
