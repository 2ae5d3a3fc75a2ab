//! Row-wise distances of each head: forward, and forward and backward.
//!
//! `cargo bench -p cm-benches --bench rowwise` ends with the ratios to the baselines at batch 256:
//! dfdx's operations for MRN and Max, a sort per row for IQE.

use std::hint::black_box;

use cm_benches::heads::{Batch, FEATURES, Form, HEADS};
use cm_benches::{baseline, compare};
use cm_quasimetric::Head;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use dfdx::prelude::Cpu;

fn rowwise(criterion: &mut Criterion) {
    for (name, head) in HEADS {
        let mut group = criterion.benchmark_group(format!("rowwise/{name}"));
        group.sample_size(20);
        for size in [128, 256, 512, 1024] {
            let mut batch = Batch::new(Form::Rowwise, size);
            group.throughput(Throughput::Elements((size * FEATURES) as u64));
            group.bench_function(BenchmarkId::new("forward", size), |b| {
                b.iter(|| batch.forward(head));
            });
            group.bench_function(BenchmarkId::new("forward+backward", size), |b| {
                b.iter(|| batch.forward_backward(head));
            });
        }
        group.finish();
    }
}

fn ratios() {
    let size = 256;
    let dev = Cpu::default();
    for (name, head) in HEADS {
        let mut ours = Batch::new(Form::Rowwise, size);
        let theirs = Batch::new(Form::Rowwise, size);
        let (x, y, grad) = (&theirs.x, &theirs.y, &theirs.grad);
        compare(
            &format!("rowwise {name} forward+backward, {size} x {FEATURES}"),
            || ours.forward_backward(head),
            || {
                black_box(match head {
                    Head::Iqe { .. } => {
                        baseline::sort_per_pair(x, y, grad, (0..size).map(|row| (row, row)))
                    }
                    _ => baseline::composed(&dev, head, x, y, grad, size),
                });
            },
        );
    }
}

criterion_group!(benches, rowwise);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
}
