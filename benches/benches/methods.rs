//! One training step of every method with the settings of the two-dimensional experiment (batch
//! 256), on one thread. `-- --device cuda` measures a GPU instead.

use std::hint::black_box;

use cm_benches::device;
use cm_benches::steps::{BATCH, HostBatch, Step};
use cm_learner::Dimensions;
use cm_nn::{Backend, DfdxBackend};
use cm_train::{Method, MethodSettings};
use criterion::Criterion;

/// Batches that take turns.
const BATCHES: usize = 16;
/// Steps taken before the clock starts, so that the weights are not those of the initialisation.
const WARM_UP: usize = 200;

/// States in a square of 40 by 40, goals near them, actions of length about 1.
fn batch(seed: u64) -> HostBatch {
    let numbers = |part, columns| cm_benches::numbers(7 * seed + part, BATCH * columns);
    let near = |state: &[f32], part, reach: f32| {
        state.iter().zip(numbers(part, 2)).map(|(x, u)| x + reach * u).collect::<Vec<_>>()
    };
    let state: Vec<f32> = numbers(1, 2).iter().map(|u| 20.0 * u).collect();
    HostBatch {
        action: numbers(4, 2),
        next_state: near(&state, 2, 1.0),
        goal: near(&state, 3, 5.0),
        goal_action: numbers(5, 2),
        steps_to_goal: numbers(6, 1).iter().map(|u| (5.0 + 5.0 * u).floor()).collect(),
        state,
    }
}

/// Every method's step, on one backend.
fn on<B: Backend>(backend: &B, name: &str, criterion: &mut Criterion) {
    let dimensions = Dimensions::new(2, 2, 0..2).expect("the sizes fit");
    let batches: Vec<_> = (1..=BATCHES as u64).map(batch).collect();
    let mut group = criterion.benchmark_group(format!("step on the plane, {name}"));
    for method in Method::ALL {
        let mut step = Step::new(backend, &MethodSettings::plane(method), BATCH, &dimensions);
        let mut at = 0;
        let mut step = || {
            at = (at + 1) % BATCHES;
            _ = black_box(step.run(&batches[at]).expect("the shapes fit"));
        };
        (0..WARM_UP).for_each(|_| step());
        group.bench_function(method.key(), |bencher| bencher.iter(&mut step));
    }
    group.finish();
}

fn step(criterion: &mut Criterion) {
    match device::cuda() {
        Some(backend) => on(&backend, "cuda", criterion),
        None => on(&DfdxBackend::new(0), "one thread", criterion),
    }
}

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        let mut criterion = device::criterion();
        step(&mut criterion);
        criterion.final_summary();
    });
}
