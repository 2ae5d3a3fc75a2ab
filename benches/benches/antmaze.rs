//! Steps of AntMaze per second (one is five steps of MuJoCo with RK4), random actions.
//!
//! `cargo bench -p cm-benches --bench antmaze` ends with figures measured alternately in one run:
//! the environment (acting, observing, asking for success), a bare loop of `mj_step`, and the same
//! loop in Python (`mujoco_steps.py`, run by `$PYTHON` or `python3`; left out where that has no
//! mujoco), all along the same trajectories; then as many environments as threads on 1, 2, ...
//! threads. All in processor time, which other work disturbs little. Without MuJoCo
//! (`cargo xtask mujoco install`) it says so and measures nothing.
//!
//! The figures are in `docs/antmaze.md`.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use cm_benches::bare_mujoco::BareMujoco;
use cm_benches::python::Script;
use cm_envs::Env;
use cm_envs::ant_maze::{ACTION, AntEpisode, AntMaze, Maze, STATE, Task, mjcf, standing};
use cm_envs::mujoco::Mujoco;
use cm_random::{Philox, Stream};
use criterion::{Criterion, Throughput, criterion_group};

/// The baseline.
const SCRIPT: &str = include_str!("../mujoco_steps.py");
const TASKS: [Task; 3] = [Task::Umaze, Task::MediumPlay, Task::LargePlay];
/// Steps between two looks at the clock.
const STEPS: usize = 200;

fn stream() -> Stream {
    Philox::new(1).stream(0, 0)
}

fn actions() -> Vec<f32> {
    cm_benches::numbers(3, STEPS * ACTION)
}

fn mujoco() -> Option<Mujoco> {
    Mujoco::find().map_err(|reason| println!("SKIPPED antmaze: {reason}")).ok()
}

fn run(maze: &AntMaze, episode: &mut AntEpisode, actions: &[f32]) {
    episode.place(&standing(&mut stream())).unwrap();
    let mut seen = [0.0; STATE];
    for action in actions.chunks_exact(ACTION) {
        maze.observe(episode, &mut seen);
        black_box(&seen);
        maze.step(episode, action).unwrap();
        black_box(maze.succeeded(episode));
    }
}

fn steps(criterion: &mut Criterion) {
    let Some(mujoco) = mujoco() else { return };
    let actions = actions();
    let mut group = criterion.benchmark_group("antmaze");
    group.sample_size(10).throughput(Throughput::Elements(STEPS as u64));
    for task in TASKS {
        let maze = AntMaze::new(&mujoco, task).unwrap();
        let mut episode = maze.begin(stream()).unwrap();
        group.bench_function(task.name(), |b| b.iter(|| run(&maze, &mut episode, &actions)));
    }
    group.finish();
}

fn ratios() {
    let Some(mujoco) = mujoco() else { return };
    let actions = actions();
    for task in TASKS {
        let maze = AntMaze::new(&mujoco, task).unwrap();
        let mut episode = maze.begin(stream()).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(task.name());
        write_for_python(task.maze(), &actions, &folder);
        let mut python = Script::start("mujoco_steps.py", SCRIPT, folder.display());
        let Some(mut bare) = BareMujoco::new(&mjcf(Some(task.maze()))) else {
            println!("{task}: the bare loop needs MuJoCo in the cache: cargo xtask mujoco install");
            continue;
        };
        let start_state = standing(&mut stream());
        let [mut best_ours, mut best_bare, mut best_python] = [f64::MAX; 3];
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            best_ours = best_ours.min(processor_seconds(|| run(&maze, &mut episode, &actions)));
            best_bare = best_bare.min(processor_seconds(|| bare.run(&start_state, &actions)));
            if let Some(answer) = python.as_mut().and_then(|python| python.ask(folder.display())) {
                best_python = best_python.min(answer);
            }
        }
        let rate = |seconds: f64| STEPS as f64 / seconds;
        println!(
            "{task}, one core: {:.0} steps per second, bare loop {:.0}, ratio {:.3}",
            rate(best_ours),
            rate(best_bare),
            best_bare / best_ours
        );
        if python.is_some() {
            println!(
                "{task}, one core: Python {:.0} steps per second, ratio {:.3}",
                rate(best_python),
                best_python / best_ours
            );
        }
    }
    scaling(&AntMaze::new(&mujoco, Task::Umaze).unwrap(), &actions);
}

/// As many episodes as threads on ever more threads, each in turn, by the processor time of the
/// slowest thread.
fn scaling(maze: &AntMaze, actions: &[f32]) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut best = vec![f64::MAX; cores];
    for _ in 0..10 {
        for (threads, best) in (1..).zip(&mut best) {
            let episode = || {
                let mut episode = maze.begin(stream()).unwrap();
                processor_seconds(|| run(maze, &mut episode, actions))
            };
            let slowest = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(episode)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).fold(0.0, f64::max)
            });
            *best = best.min(slowest);
        }
    }
    for (threads, seconds) in (1..).zip(&best) {
        println!(
            "{} on {threads} threads: {:.0} steps per second, {:.2} times one thread",
            maze.name(),
            f64::from(threads) * STEPS as f64 / seconds,
            f64::from(threads) * best[0] / seconds
        );
    }
}

/// The processor time that `f` takes on this thread where Linux tells it, the time that passes
/// elsewhere.
fn processor_seconds(f: impl FnOnce()) -> f64 {
    let used = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
    };
    let before = used();
    let passed = seconds(f);
    before.zip(used()).map_or(passed, |(before, after)| after - before)
}

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

fn write_for_python(maze: Maze, actions: &[f32], folder: &Path) {
    let rows = actions.chunks_exact(ACTION).fold(String::new(), |mut text, action| {
        for number in action {
            let _ = write!(text, "{number} ");
        }
        text + "\n"
    });
    let state = standing(&mut stream()).map(|number| number.to_string()).join(" ");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("model.xml"), mjcf(Some(maze))).unwrap();
    std::fs::write(folder.join("start.txt"), state).unwrap();
    std::fs::write(folder.join("actions.txt"), rows).unwrap();
}

criterion_group! {
    name = benches;
    // Its plots need a font of the system.
    config = Criterion::default().without_plots();
    targets = steps
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
}
