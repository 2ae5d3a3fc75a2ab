//! One training step: the critic's and the policy's losses, their gradients, Adam.
//!
//! `cargo bench -p cm-benches --bench step` measures the shipped `cm_distill::Cmd1` with the
//! settings of the authors' code on the CPU (batch 256, goals drawn inside), and ends with the
//! ratios to the same step composed of dfdx's own operations, at the paper's size (4 hidden layers
//! of 512) and at the size of the two-dimensional experiment (3 of 64), 512 features.
//!
//! `-- --device cuda:0,bf16` measures a GPU instead (any device of `cm train`): every method's step
//! as a graph that is replayed, for one seed and for eight at once, and beside it the same step in
//! JAX where `$PYTHON` (`python3`) has it, in TF32 whatever the precision here.

use std::hint::black_box;

use cm_benches::python::Script;
use cm_benches::steps::{ACTION, BATCH, Data, GOAL, HostBatch, STATE, Step};
use cm_benches::{cmd1_dfdx, compare, device};
use cm_cuda::CudaBackend;
use cm_learner::Dimensions;
use cm_nn::{Backend, DfdxBackend, Result};
use cm_train::{Method, MethodSettings};
use criterion::Criterion;

const SIZES: [(&str, &[usize]); 2] = [("4x512", &[512; 4]), ("3x64", &[64; 3])];

/// The baseline on a GPU.
const JAX: &str = include_str!("../jax_steps.py");
/// The methods it has.
const IN_JAX: [Method; 4] = [Method::Cmd1, Method::Cmd2, Method::Crl, Method::Qrl];
/// Replays whose median is the time of one.
const REPLAYS: usize = 101;

/// The step at every size on the CPU.
fn on_cpu(criterion: &mut Criterion) {
    let backend = DfdxBackend::new(0);
    let data = Data::new();
    let mut group = criterion.benchmark_group("cmd1 step, cpu");
    group.sample_size(20);
    for (size, hidden) in SIZES {
        let mut step = Step::cmd1(&backend, hidden);
        group.bench_function(size, |bencher| {
            bencher.iter(|| _ = black_box(step.draw_and_run(&data).expect("the shapes fit")));
        });
    }
    group.finish();
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

/// Whose settings a step has.
#[derive(Clone, Copy)]
enum World {
    AntMaze,
    Plane,
}

impl World {
    /// Its name in questions to JAX.
    const fn key(self) -> &'static str {
        match self {
            Self::AntMaze => "antmaze",
            Self::Plane => "plane",
        }
    }
}

/// A step to measure on a GPU.
struct Case {
    method: Method,
    world: World,
    rows: usize,
    width: usize,
}

impl Case {
    fn all() -> Vec<Self> {
        let case = |world, rows, width| move |method| Self { method, world, rows, width };
        let ant = [Method::Cmd1, Method::Cmd2, Method::Qrl, Method::Crl, Method::Gcbc, Method::Iql];
        let mut cases = Vec::from(ant.map(case(World::AntMaze, BATCH, 512)));
        cases.push(case(World::AntMaze, 1024, 1024)(Method::Cmd1));
        cases.extend(Method::ALL.map(case(World::Plane, BATCH, 64)));
        cases
    }

    /// The median of replays of the step of all the backend's seeds, in microseconds.
    fn replay(&self, backend: &CudaBackend) -> Result<f32> {
        let (settings, dimensions) = match self.world {
            World::AntMaze => {
                let settings = MethodSettings::ant_maze(self.method, &[self.width; 4]);
                (settings, Dimensions::new(STATE, ACTION, 0..GOAL)?)
            }
            World::Plane => (MethodSettings::plane(self.method), Dimensions::new(2, 2, 0..2)?),
        };
        let mut step = Step::new(backend, &settings, self.rows, &dimensions);
        for replica in 0..backend.seeds().len() {
            let batch = HostBatch::random(self.rows, &dimensions, replica as u64);
            step.write(replica, &batch)?;
        }
        let device = backend.device();
        for _ in 0..3 {
            step.replay()?;
        }
        device.wait()?;
        let mut times = Vec::new();
        for _ in 0..REPLAYS {
            let (done, milliseconds) = device.time(|| step.replay().map(drop))?;
            done?;
            times.push(1e3 * milliseconds);
        }
        times.sort_by(f32::total_cmp);
        Ok(times[REPLAYS / 2])
    }

    /// The same step in JAX. At the code's sizes compiling it takes minutes.
    fn in_jax(&self, jax: &mut Script, seeds: u64) -> Option<f64> {
        let Self { method, world, rows, width } = *self;
        let is_there = IN_JAX.contains(&method) && rows == BATCH;
        let question = format!("{} {} {rows} {width} {seeds}", method.key(), world.key());
        is_there.then(|| jax.ask(question)).flatten()
    }
}

/// Every step for one seed and for eight, on the device and with the precision of `like`, beside
/// JAX.
fn on_gpu(like: &CudaBackend) -> Result<()> {
    let mut jax = Script::start("jax_steps.py", JAX, "crl plane 8 8 1");
    for seeds in [1, 8] {
        let numbers = (0..seeds).collect::<Vec<_>>();
        let backend = CudaBackend::new(like.device(), &numbers, like.precision())?;
        println!("{seeds} at once, microseconds a step and seed:");
        for case in Case::all() {
            let ours = f64::from(case.replay(&backend)?) / seeds as f64;
            let Case { method, world, rows, width } = &case;
            let (method, world) = (method.key(), world.key());
            print!("{method:12} {world:8} batch {rows:4}, width {width:4} {ours:8.1}");
            match jax.as_mut().and_then(|jax| case.in_jax(jax, seeds)) {
                Some(theirs) => {
                    let theirs = theirs / seeds as f64;
                    println!(", JAX {theirs:8.1}, {:5.2} times as long", theirs / ours);
                }
                None => println!(),
            }
        }
    }
    Ok(())
}

fn main() {
    if let Some(backend) = device::cuda() {
        if let Err(error) = on_gpu(&backend) {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    let mut criterion = device::criterion();
    on_cpu(&mut criterion);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
}
