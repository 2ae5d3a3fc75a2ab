//! Exact successor distances: all pairs and a single goal, against the number of states.
//!
//! `cargo bench -p cm-benches --bench tabular` ends with the growth over larger sizes and with the
//! ratio to value iteration. Discount 0.99.

use std::hint::black_box;
use std::time::Duration;

use cm_benches::processes::{KINDS, chain, random_graph, slippery_grid, value_iteration};
use cm_benches::{best_of, compare};
use cm_envs::tabular::Discount;
use criterion::{BenchmarkId, Criterion, criterion_group};

fn discount() -> Discount {
    Discount::new(0.99).expect("0.99 is a discount")
}

fn single_goal(criterion: &mut Criterion) {
    for (name, build) in KINDS {
        let mut group = criterion.benchmark_group(format!("tabular/single goal/{name}"));
        group.sample_size(10);
        for states in [1_000, 4_000, 16_000] {
            let process = build(states);
            group.bench_function(BenchmarkId::from_parameter(states), |b| {
                b.iter(|| process.reach(0, discount()));
            });
        }
        group.finish();
    }
}

fn all_pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tabular/all pairs");
    group.sample_size(10);
    for states in [125, 250, 500] {
        let graph = chain(&random_graph(states));
        group.bench_function(BenchmarkId::new("chain", states), |b| {
            b.iter(|| graph.successor_distances(discount()));
        });
        let grid = slippery_grid(states);
        group.bench_function(BenchmarkId::new("controlled", states), |b| {
            b.iter(|| grid.successor_distances(discount()));
        });
    }
    group.finish();
}

/// Times at growing sizes, and the power of the size that the last doubling followed.
fn growth() {
    for (name, build) in KINDS {
        table(&format!("single goal, {name}"), &[12_500, 25_000, 50_000, 100_000], |states| {
            let process = build(states);
            best_of(2, || {
                black_box(process.reach(0, discount()).expect("converges"));
            })
        });
    }
    table("all pairs, random graph, chain", &[250, 500, 1_000, 2_000], |states| {
        let chain = chain(&random_graph(states));
        best_of(2, || {
            black_box(chain.successor_distances(discount()).expect("converges"));
        })
    });
    table("all pairs, slippery grid, controlled", &[250, 500, 1_000, 2_000], |states| {
        let process = slippery_grid(states);
        best_of(1, || {
            black_box(process.successor_distances(discount()).expect("converges"));
        })
    });
}

fn table(what: &str, sizes: &[usize], time: impl Fn(usize) -> Duration) {
    let mut last: Option<Duration> = None;
    for &states in sizes {
        let now = time(states);
        let power = last.map_or(String::new(), |last| {
            format!(", power {:.1}", now.div_duration_f64(last).log2())
        });
        println!("{what}, {states} states: {:.3} s{power}", now.as_secs_f64());
        last = Some(now);
    }
}

fn ratios() {
    for (name, build) in KINDS {
        let process = build(2_500);
        compare(
            &format!("single goal, {name}, 2500 states, against value iteration"),
            || {
                black_box(process.reach(0, discount()).expect("converges"));
            },
            || {
                black_box(value_iteration(&process, 0, 0.99));
            },
        );
    }
    let process = random_graph(400);
    let graph = chain(&process);
    compare(
        "all pairs, random graph, 400 states, factorisation against goal by goal",
        || {
            black_box(graph.successor_distances(discount()).expect("converges"));
        },
        || {
            black_box(process.successor_distances(discount()).expect("converges"));
        },
    );
}

criterion_group!(benches, single_goal, all_pairs);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        growth();
        ratios();
    }
}
