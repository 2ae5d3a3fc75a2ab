//! Pairwise distances of each head: forward, forward and backward, and under symmetric InfoNCE.
//!
//! `cargo bench -p cm-benches --bench pairwise` ends with the cost per pair and feature up to batch
//! 4096 and the ratios to the baselines at batch 256: dfdx's broadcasting operations for MRN and
//! Max, a sort per pair for IQE. A filter that matches nothing (`-- nothing`) prints these alone.

use std::hint::black_box;

use cm_benches::heads::{Batch, FEATURES, Form, HEADS};
use cm_benches::{baseline, best_of, compare};
use cm_quasimetric::Head;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use dfdx::prelude::Cpu;

fn pairwise(criterion: &mut Criterion) {
    for (name, head) in HEADS {
        let mut group = criterion.benchmark_group(format!("pairwise/{name}"));
        group.sample_size(20);
        for size in [128, 256, 512, 1024] {
            let mut batch = Batch::new(Form::Pairwise, size);
            group.throughput(Throughput::Elements((size * size * FEATURES) as u64));
            group.bench_function(BenchmarkId::new("forward", size), |b| {
                b.iter(|| batch.forward(head));
            });
            group.bench_function(BenchmarkId::new("forward+backward", size), |b| {
                b.iter(|| batch.forward_backward(head));
            });
            group.bench_function(BenchmarkId::new("info_nce", size), |b| {
                b.iter(|| batch.info_nce(head));
            });
        }
        group.finish();
    }
}

/// Cost per pair and feature up to batch 4096: without a cliff it stays the same.
fn growth() {
    for (name, head) in HEADS {
        for size in [256, 1024, 4096] {
            let mut batch = Batch::new(Form::Pairwise, size);
            let best = best_of(3, || batch.forward_backward(head));
            let cost = best.as_secs_f64() * 1e12 / (size * size * FEATURES) as f64;
            println!(
                "pairwise {name} forward+backward, {size} x {size} x {FEATURES}: {cost:.1} ps each"
            );
        }
    }
}

fn ratios() {
    let size = 256;
    let dev = Cpu::default();
    for (name, head) in HEADS {
        let mut ours = Batch::new(Form::Pairwise, size);
        let theirs = Batch::new(Form::Pairwise, size);
        let (x, y, grad) = (&theirs.x, &theirs.y, &theirs.grad);
        compare(
            &format!("pairwise {name} forward+backward, {size} x {size} x {FEATURES}"),
            || ours.forward_backward(head),
            || {
                black_box(match head {
                    Head::Iqe { .. } => {
                        let pairs = (0..size * size).map(|pair| (pair / size, pair % size));
                        baseline::sort_per_pair(x, y, grad, pairs)
                    }
                    _ => baseline::broadcast(&dev, head, x, y, grad, size),
                });
            },
        );
        let best = best_of(30, || {
            black_box(ours.info_nce(head));
        });
        let milliseconds = best.as_secs_f64() * 1e3;
        println!(
            "pairwise {name} under InfoNCE, {size} x {size} x {FEATURES}: {milliseconds:.3} ms"
        );
    }
}

criterion_group!(benches, pairwise);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        growth();
        ratios();
    }
}
