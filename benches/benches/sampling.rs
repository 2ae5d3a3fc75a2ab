//! Batches of transitions with geometric future goals, from a million steps (29 observations, 8
//! actions, gamma 0.99).
//!
//! `cargo bench -p cm-benches --bench sampling` ends with two ratios for each batch size, each
//! measured alternately in one run: to a plain gather with precomputed indices, and to NumPy
//! (`numpy_sampling.py`, run by `$PYTHON` or `python3`; left out where that has no NumPy).
//!
//! Nanoseconds per sample on two virtual cores, the middle one of three runs:
//!
//! | batch | one thread | NumPy beside it | two threads | NumPy beside it | one thread to a plain gather |
//! |---|---|---|---|---|---|
//! | 256 | 57 | 383 (6.7 times) | 35 | 376 (10.8 times) | 2.1 times as fast |
//! | 1024 | 54 | 336 (6.2 times) | 30 | 333 (11.2 times) | 2.0 times as fast |
//! | 4096 | 62 | 323 (5.2 times) | 31 | 319 (10.4 times) | 2.0 times as fast |
//!
//! Over the three runs the two threads were 10.5 to 10.9, 10.4 to 11.2 and 10.4 to 10.8 times as
//! fast as NumPy. The rows come from memory, not from the cache, and that is most of what a sample
//! costs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cm_benches::compare;
use cm_benches::python::Script;
use cm_replay::{Batch, Dataset, Goals, Matrix, Prefetcher, Sampler};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};

/// The baseline.
const SCRIPT: &str = include_str!("../numpy_sampling.py");
const SIZES: [usize; 3] = [256, 1024, 4096];
const STEPS: usize = 1_000_000;
const LENGTH: usize = 1000;

fn data() -> Arc<Dataset> {
    let matrix = |seed, columns| {
        Matrix::from_vec(STEPS, columns, cm_benches::numbers(seed, STEPS * columns)).unwrap()
    };
    let ends = (1..=STEPS / LENGTH).map(|trajectory| trajectory * LENGTH).collect();
    Arc::new(Dataset::new(matrix(1, 29), matrix(2, 8), ends).unwrap())
}

/// Copies the rows whose numbers are already in `batch`.
fn plain_gather(data: &Dataset, batch: &mut Batch) {
    fn copy(source: &Matrix, row: usize, target: &mut [f32], at: usize) {
        target[at * source.columns()..][..source.columns()].copy_from_slice(source.row(row));
    }
    let (observations, actions) = (data.observations(), data.actions());
    for at in 0..batch.steps.len() {
        let (step, goal) = (batch.steps[at], batch.goal_steps[at]);
        copy(observations, step, &mut batch.observations, at);
        copy(actions, step, &mut batch.actions, at);
        copy(observations, step + 1, &mut batch.next_observations, at);
        copy(observations, goal, &mut batch.goals, at);
        copy(actions, goal, &mut batch.goal_actions, at);
    }
}

fn sampling(criterion: &mut Criterion) {
    let data = data();
    let sampler = Sampler::new(data.clone(), Goals::geometric(0.99), 0).unwrap();
    let mut group = criterion.benchmark_group("sampling");
    for size in SIZES {
        let mut batch = Batch::new(&data, size);
        let mut step = 0;
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::new("fill", size), |b| {
            b.iter(|| {
                sampler.fill(step, &mut batch).unwrap();
                step += 1;
            });
        });
        let mut prefetcher = Prefetcher::new(&sampler, size, 0, 1).unwrap();
        group.bench_function(BenchmarkId::new("prefetch", size), |b| {
            b.iter(|| prefetcher.next(&mut batch));
        });
    }
    group.finish();
}

fn ratios() {
    let data = data();
    let sampler = Sampler::new(data.clone(), Goals::geometric(0.99), 0).unwrap();
    let mut numpy = Script::start("numpy_sampling.py", SCRIPT, 256);
    for size in SIZES {
        let batches = SAMPLES / size;
        let mut batch = Batch::new(&data, size);
        let mut step = 0;
        let mut fill = || {
            for _ in 0..batches {
                sampler.fill(step, &mut batch).unwrap();
                step += 1;
            }
        };
        // Enough drawn beforehand that no batch finds its rows still in the cache.
        let mut drawn: Vec<Batch> = (0..200_000 / size)
            .map(|step| {
                let mut batch = Batch::new(&data, size);
                sampler.fill(1_000_000 + step as u64, &mut batch).unwrap();
                batch
            })
            .collect();
        let mut next = 0;
        let single = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        single.install(|| {
            compare(
                &format!("{SAMPLES} samples in batches of {size}, one thread, to a plain gather"),
                &mut fill,
                || {
                    for _ in 0..batches {
                        plain_gather(&data, black_box(&mut drawn[next]));
                        next = (next + 1) % drawn.len();
                    }
                },
            );
        });
        if let Some(numpy) = &mut numpy {
            single.install(|| compare_with_numpy(numpy, size, "one thread", &mut fill));
            let threads = rayon::current_num_threads();
            rayon::scope(|_| {
                compare_with_numpy(numpy, size, &format!("{threads} threads"), &mut fill)
            });
        }
    }
}

/// Samples drawn between two looks at the clock.
const SAMPLES: usize = 16_384;

/// The best of ours and of `numpy_sampling.py` over a few seconds, in turn.
fn compare_with_numpy(numpy: &mut Script, size: usize, how: &str, ours: &mut impl FnMut()) {
    let (mut best_ours, mut best_numpy) = (f64::MAX, f64::MAX);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        let Some(answer) = numpy.ask(size) else { return };
        best_numpy = best_numpy.min(answer);
        for _ in 0..4 {
            let start = Instant::now();
            ours();
            best_ours = best_ours.min(start.elapsed().as_nanos() as f64 / SAMPLES as f64);
        }
    }
    println!(
        "batches of {size}, {how}: {best_ours:.1} ns per sample, NumPy {best_numpy:.1} ns, ratio {:.1}",
        best_numpy / best_ours
    );
}

criterion_group!(benches, sampling);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
}
