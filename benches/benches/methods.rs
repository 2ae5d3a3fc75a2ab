//! One training step of every method with the settings of the two-dimensional experiment (batch 256), on one thread.

use std::hint::black_box;

use cm_nn::{DfdxBackend, Var};
use cm_policy::{Batch, Dimensions};
use cm_train::{Method, MethodSettings};
use criterion::{Criterion, criterion_group};

const BATCH: usize = 256;
/// Batches that take turns.
const BATCHES: usize = 16;
/// Steps taken before the clock starts, so that the weights are not those of the initialisation.
const WARM_UP: usize = 200;

/// States in a square of 40 by 40, goals near them, actions of length about 1.
fn batch(backend: &DfdxBackend, seed: u64) -> Batch<DfdxBackend> {
    let numbers = |part, columns| cm_benches::numbers(7 * seed + part, BATCH * columns);
    let var = |columns, values| Var::new(backend, [BATCH, columns], values).expect("it fits");
    let near = |state: &[f32], part, reach: f32| {
        state.iter().zip(numbers(part, 2)).map(|(x, u)| x + reach * u).collect::<Vec<_>>()
    };
    let state: Vec<f32> = numbers(1, 2).iter().map(|u| 20.0 * u).collect();
    let (next_state, goal) = (near(&state, 2, 1.0), near(&state, 3, 5.0));
    Batch {
        state: var(2, state),
        action: var(2, numbers(4, 2)),
        next_state: var(2, next_state),
        goal: var(2, goal),
        goal_action: var(2, numbers(5, 2)),
        steps_to_goal: var(1, numbers(6, 1).iter().map(|u| (5.0 + 5.0 * u).floor()).collect()),
    }
}

fn step(criterion: &mut Criterion) {
    let backend = DfdxBackend::new(0);
    let dimensions = Dimensions::new(2, 2, 0..2).expect("the sizes fit");
    let batches: Vec<_> = (1..=BATCHES as u64).map(|seed| batch(&backend, seed)).collect();
    let mut group = criterion.benchmark_group("step on the plane, one thread");
    for method in Method::ALL {
        let learner = MethodSettings::plane(method).learner(&backend, 0, &dimensions);
        let learner = learner.expect("the settings are valid");
        let mut at = 0;
        let mut step = || {
            at = (at + 1) % BATCHES;
            black_box(learner.step(&batches[at]).expect("the shapes fit"));
        };
        (0..WARM_UP).for_each(|_| step());
        group.bench_function(method.key(), |bencher| bencher.iter(&mut step));
    }
    group.finish();
}

criterion_group!(benches, step);

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        benches();
        Criterion::default().configure_from_args().final_summary();
    });
}
