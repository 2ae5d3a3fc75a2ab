//! One training step of CMD-1 (batch 256): critic with potential, policy with cloning and C-Mixup, Adam, goals drawn inside.
//!
//! `cargo bench -p cm-benches --bench step` ends with the ratios to the same step composed of dfdx's own operations, at the paper's
//! size (4 hidden layers of 512) and at the size of the two-dimensional experiment (3 of 64), 512 features.

use std::hint::black_box;

use cm_benches::cmd1::{Data, Learner};
use cm_benches::{cmd1_dfdx, compare};
use cm_nn::DfdxBackend;
use criterion::{Criterion, criterion_group};

const SIZES: [(&str, &[usize]); 2] = [("4x512", &[512; 4]), ("3x64", &[64; 3])];

fn learner(hidden: &[usize]) -> Learner<DfdxBackend> {
    Learner::new(&DfdxBackend::new(0), hidden).expect("the sizes fit")
}

fn step(criterion: &mut Criterion) {
    let data = Data::new();
    let mut group = criterion.benchmark_group("cmd1 step");
    group.sample_size(20);
    for (name, hidden) in SIZES {
        let learner = learner(hidden);
        group.bench_function(name, |b| {
            b.iter(|| black_box(learner.step(&data).expect("the shapes fit")));
        });
    }
    group.finish();
}

fn ratios() {
    let data = Data::new();
    let (wide, narrow) = (learner(SIZES[0].1), learner(SIZES[1].1));
    let mut wide_dfdx = cmd1_dfdx::wide::Learner::new();
    let mut narrow_dfdx = cmd1_dfdx::narrow::Learner::new();
    compare(
        "cmd1 step, 4x512, against plain dfdx",
        || _ = black_box(wide.step(&data).expect("the shapes fit")),
        || _ = black_box(wide_dfdx.step(&data)),
    );
    compare(
        "cmd1 step, 3x64, against plain dfdx",
        || _ = black_box(narrow.step(&data).expect("the shapes fit")),
        || _ = black_box(narrow_dfdx.step(&data)),
    );
}

criterion_group!(benches, step);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
}
