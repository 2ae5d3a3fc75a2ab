//! Ratios to a baseline, measured alternately in one run.

use std::time::{Duration, Instant};

/// Times `ours` and `baseline` in turn and prints the best of each and their ratio.
///
/// Other load on a shared machine disturbs both alike, and the best of many is disturbed least.
pub fn compare(what: &str, mut ours: impl FnMut(), mut baseline: impl FnMut()) {
    ours();
    baseline();
    let (mut best_ours, mut best_baseline) = (Duration::MAX, Duration::MAX);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        best_baseline = best_baseline.min(time(&mut baseline));
        for _ in 0..10 {
            best_ours = best_ours.min(time(&mut ours));
        }
    }
    println!(
        "{what}: {:.3} ms, baseline {:.3} ms, ratio {:.1}",
        best_ours.as_secs_f64() * 1e3,
        best_baseline.as_secs_f64() * 1e3,
        best_baseline.as_secs_f64() / best_ours.as_secs_f64(),
    );
}

/// The shortest of several runs, after one that is not counted.
pub fn best_of(runs: usize, mut f: impl FnMut()) -> Duration {
    f();
    (0..runs).map(|_| time(&mut f)).min().unwrap_or_default()
}

fn time(f: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    f();
    start.elapsed()
}
