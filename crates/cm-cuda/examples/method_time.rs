//! Times of the methods' training steps on the first GPU, as they are shipped: AntMaze's, CMD-1 at
//! two sizes; every method on the plane; OGBench's. For one seed and for eight at once.
//!
//! Every line is the median of 21 replays of one graph, by the device's own clock. Arguments, if
//! any, are the precisions to measure, how many seeds at once in the place of one and eight, and
//! words that lines must have one of.
//! `CM_CUDA_PROFILE=1` adds how long each kernel takes.
//!
//! ```sh
//! cargo run --release -p cm-cuda --example method_time -- tf32 plane
//! ```

mod timing;

use cm_cuda::{CudaBackend, Device, Precision};
use cm_learner::{Batch, BatchValues, Dimensions, GoalKinds};
use cm_nn::Backend;
use cm_nn::testing::Exact;
use cm_train::{Method, MethodSettings};

use self::timing::Times;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A method's step with the given batch, on random rows.
fn time(
    backend: &CudaBackend,
    what: &str,
    settings: &MethodSettings,
    rows: usize,
    dimensions: &Dimensions,
) -> Result<()> {
    let learner = settings.learner(backend, dimensions)?;
    let goals = match settings.method() {
        Method::Hiql => GoalKinds::Hierarchy,
        _ => GoalKinds::Shared,
    };
    let batch = Batch::with_goals(backend, rows, dimensions, goals)?;
    let seeds = backend.seeds().len();
    for replica in 0..seeds {
        let normal = |columns: usize, stream: u32| {
            Exact::normal([rows, columns], 100 * replica as u32 + stream).to_f32()
        };
        let (state, action) = (dimensions.state(), dimensions.action());
        let others = (0..goals.count()).map(|kind| normal(state, 6 + kind as u32));
        let others = others.collect::<Vec<_>>();
        let steps = (0..rows).map(|row| (row % 7) as f32).collect::<Vec<_>>();
        batch.write(
            replica,
            &BatchValues {
                state: &normal(state, 1),
                action: &normal(action, 2),
                next_state: &normal(state, 3),
                goal: &normal(state, 4),
                goal_action: &normal(action, 5),
                steps_to_goal: &steps,
                actor_goals: &others.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            },
        )?;
    }
    let Times { median, each } = timing::time(backend, || learner.step(&batch.load()?))?;
    let share = each / seeds as f32;
    println!("{what:44} {median:9.1} us, {each:9.1} each of 100, {share:9.1} a seed");
    Ok(())
}

fn main() -> Result<()> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
    };
    let all = [Precision::Tf32, Precision::Bf16, Precision::Highest];
    let (precisions, words) = std::env::args()
        .skip(1)
        .partition::<Vec<_>, _>(|word| all.iter().any(|precision| precision.to_string() == *word));
    let (counts, words) =
        words.into_iter().partition::<Vec<_>, _>(|word| word.parse::<u64>().is_ok());
    let counts = counts.iter().filter_map(|count| count.parse().ok()).collect::<Vec<u64>>();
    let counts = if counts.is_empty() { vec![1, 8] } else { counts };
    let time = |backend: &_, what: &str, settings: &_, rows, dimensions: &_| {
        let is_wanted = words.is_empty() || words.iter().any(|word| what.contains(word));
        if is_wanted { time(backend, what, settings, rows, dimensions) } else { Ok(()) }
    };
    for precision in all {
        if !precisions.is_empty() && !precisions.contains(&precision.to_string()) {
            continue;
        }
        for &count in &counts {
            println!("\n{precision}, {count} seeds");
            let seeds = (0..count).collect::<Vec<_>>();
            let backend = CudaBackend::new(&device, &seeds, precision)?;
            let (ant, plane) = (Dimensions::new(29, 8, 0..2)?, Dimensions::new(2, 2, 0..2)?);
            for (rows, width) in [(256, 512), (1024, 1024)] {
                let settings = MethodSettings::ant_maze(Method::Cmd1, &[width; 4]);
                let what = format!("cmd1, AntMaze, batch {rows}, 4 x {width}");
                time(&backend, &what, &settings, rows, &ant)?;
            }
            for method in [Method::Cmd2, Method::Qrl, Method::Crl, Method::Gcbc, Method::Iql] {
                let what = format!("{}, AntMaze, batch 256, 4 x 512", method.key());
                let settings = MethodSettings::ant_maze(method, &[512; 4]);
                time(&backend, &what, &settings, 256, &ant)?;
            }
            for method in Method::ALL {
                let what = format!("{}, plane, batch 256", method.key());
                time(&backend, &what, &MethodSettings::plane(method), 256, &plane)?;
            }
            for method in [Method::Cmd1, Method::Tmd, Method::Qrl, Method::Crl, Method::Hiql] {
                let rows = if method == Method::Tmd { 512 } else { 1024 };
                let what = format!("{}, OGBench's point, batch {rows}, 3 x 512", method.key());
                let settings =
                    MethodSettings::ogbench(method, "pointmaze-large-stitch-v0".parse()?);
                time(&backend, &what, &settings, rows, &plane)?;
            }
        }
    }
    println!("{} MiB held", device.held_bytes() >> 20);
    Ok(())
}
