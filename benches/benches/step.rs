//! One training step of CMD-1 (batch 256): critic with potential, policy with cloning and C-Mixup,
//! Adam, goals drawn inside.
//!
//! `cargo bench -p cm-benches --bench step` measures the shipped `cm_distill::Cmd1` with the
//! settings of the authors' code, and ends with the ratios to the same step composed of dfdx's own
//! operations, at the paper's size (4 hidden layers of 512) and at the size of the two-dimensional
//! experiment (3 of 64), 512 features.
//! `-- --device cuda:0,bf16` measures a GPU instead (any device of `cm train`); batches are drawn
//! on the host and uploaded.

use std::hint::black_box;

use cm_benches::steps::{Data, Step};
use cm_benches::{cmd1_dfdx, compare, device};
use cm_nn::{Backend, DfdxBackend};
use criterion::Criterion;

const SIZES: [(&str, &[usize]); 2] = [("4x512", &[512; 4]), ("3x64", &[64; 3])];

/// The step at every size, on one backend.
fn on<B: Backend>(backend: &B, name: &str, criterion: &mut Criterion) {
    let data = Data::new();
    let mut group = criterion.benchmark_group(format!("cmd1 step, {name}"));
    group.sample_size(20);
    for (size, hidden) in SIZES {
        let mut step = Step::cmd1(backend, hidden);
        group.bench_function(size, |bencher| {
            bencher.iter(|| _ = black_box(step.draw_and_run(&data).expect("the shapes fit")));
        });
    }
    group.finish();
}

fn step(criterion: &mut Criterion) {
    match device::cuda() {
        Some(backend) => on(&backend, "cuda", criterion),
        None => on(&DfdxBackend::new(0), "cpu", criterion),
    }
}

fn ratios() {
    let data = Data::new();
    let backend = DfdxBackend::new(0);
    let [mut wide, mut narrow] = SIZES.map(|(_, hidden)| Step::cmd1(&backend, hidden));
    let mut wide_dfdx = cmd1_dfdx::wide::Learner::new();
    let mut narrow_dfdx = cmd1_dfdx::narrow::Learner::new();
    compare(
        "cmd1 step, 4x512, against plain dfdx",
        || _ = black_box(wide.draw_and_run(&data).expect("the shapes fit")),
        || _ = black_box(wide_dfdx.step(&data)),
    );
    compare(
        "cmd1 step, 3x64, against plain dfdx",
        || _ = black_box(narrow.draw_and_run(&data).expect("the shapes fit")),
        || _ = black_box(narrow_dfdx.step(&data)),
    );
}

fn main() {
    let mut criterion = device::criterion();
    step(&mut criterion);
    criterion.final_summary();
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    if is_measured && device::cuda().is_none() {
        ratios();
    }
}
