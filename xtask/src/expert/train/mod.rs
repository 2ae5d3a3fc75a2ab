//! `cargo xtask expert train`: an ant learns to walk in any direction, from nothing.

mod checkpoint;
mod course;
mod herd;
mod inputs;
mod learner;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::Args;
use cm_envs::ant_maze::{Ant, Maze};
use cm_envs::mujoco::Mujoco;
use cm_nn::Snapshot;
use indicatif::{ProgressBar, ProgressStyle};

use self::checkpoint::Checkpoint;
use self::course::Ground;
use self::herd::Herd;
use self::learner::{Learner, Settings};

#[derive(Args)]
pub(super) struct Arguments {
    /// Folder for the expert, the checkpoint and the metrics; a training that is there already goes on.
    #[arg(long, value_name = "FOLDER", default_value = "runs/expert")]
    out: PathBuf,
    /// Walk in this maze (umaze, medium or large) instead of on an open floor.
    #[arg(long, value_parser = maze)]
    maze: Option<Maze>,
    /// Steps of the environment.
    #[arg(long, default_value_t = 3_000_000)]
    steps: u64,
    /// Start from this expert instead of from nothing.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Ants that walk at once.
    #[arg(long, default_value_t = 128)]
    ants: usize,
    /// The same seed gives the same expert, on any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use; 0 for all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// Steps that each ant walks in an iteration.
const STRIDE: usize = 32;
/// Iterations between two checkpoints, with an evaluation each.
const PERIOD: u64 = 20;
/// Of an evaluation.
const EVALUATION_ANTS: usize = 32;
const EVALUATION_STEPS: usize = 200;

fn maze(text: &str) -> Result<Maze, String> {
    let maze = Maze::ALL.into_iter().find(|maze| maze.to_string() == text);
    maze.ok_or_else(|| "expected umaze, medium or large".to_owned())
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(arguments.ants > 0, "--ants must be at least 1");
    if cfg!(debug_assertions) {
        return run_optimised();
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads).build()?;
    pool.install(|| {
        let mut training = Training::open(arguments)?;
        training.run(arguments.steps)
    })
}

/// The same command in a release build: learning is slow without optimisation.
fn run_optimised() -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["run", "--release", "--quiet", "--locked", "-p", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .context("could not start cargo")?;
    if !status.success() {
        bail!("the training did not come to its end");
    }
    Ok(())
}

/// A training under way.
struct Training {
    folder: PathBuf,
    plan: String,
    mujoco: Mujoco,
    maze: Option<Maze>,
    seed: u64,
    learner: Learner,
    herd: Herd,
    iteration: u64,
}

/// How well a policy walks without exploring.
#[derive(Clone, Copy, Debug)]
struct Evaluation {
    /// Mean units per second along the direction.
    velocity: f64,
    /// Falls in a thousand steps.
    falls: f64,
}

impl Training {
    /// Starts a training, or goes on with the one in the folder.
    fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        let Arguments { out, maze, ants, seed, .. } = arguments;
        std::fs::create_dir_all(out)
            .with_context(|| format!("could not create {}", out.display()))?;
        let mut learner = Learner::new(Settings::default(), *seed)?;
        if let Some(path) = &arguments.from {
            let bytes = std::fs::read(path)
                .with_context(|| format!("could not read {}", path.display()))?;
            let restored = Snapshot::from_safetensors(&bytes).map_err(anyhow::Error::from);
            restored
                .and_then(|snapshot| learner.restore_expert(&snapshot))
                .with_context(|| format!("could not start from {}", path.display()))?;
        }
        let from =
            arguments.from.as_ref().map_or("nothing".into(), |path| path.display().to_string());
        let place = maze.map_or("an open floor".to_owned(), |maze| maze.to_string());
        let plan = format!("{ants} ants on {place}, seed {seed}, from {from}");
        let found = Checkpoint::load(&out.join("checkpoint.bin"))?;
        let (mut iteration, mut courses) = (0, None);
        if let Some(found) = found {
            ensure!(
                found.plan == plan,
                "{} holds a training of {}, expected {plan}; give another --out",
                out.display(),
                found.plan
            );
            learner.restore_expert(&found.expert)?;
            learner.restore_optimiser(&found.optimiser, found.learning_rate)?;
            learner.inputs = found.inputs;
            (iteration, courses) = (found.iteration, Some(found.courses));
        }
        let mujoco = Mujoco::find()?;
        let model = Ant::model(&mujoco, *maze)?;
        let herd = Herd::new(&model, Ground::new(*maze), *ants, courses, *seed)?;
        if iteration == 0 && arguments.from.is_none() {
            learner.inputs.update(&herd.inputs());
        }
        Ok(Self {
            folder: out.clone(),
            plan,
            mujoco,
            maze: *maze,
            seed: *seed,
            learner,
            herd,
            iteration,
        })
    }

    /// Trains until `steps` steps were walked altogether.
    fn run(&mut self, steps: u64) -> anyhow::Result<()> {
        let per_iteration = (STRIDE * self.herd.courses().len()) as u64;
        let iterations = steps.div_ceil(per_iteration);
        let bar = progress_bar(iterations * per_iteration);
        bar.set_position(self.iteration * per_iteration);
        bar.reset_eta();
        let start = Instant::now();
        while self.iteration < iterations {
            let (velocity, divergence) = self.iterate()?;
            bar.inc(per_iteration);
            bar.set_message(format!("{velocity:.2} units per second"));
            if self.iteration.is_multiple_of(PERIOD) || self.iteration == iterations {
                let evaluation = self.evaluate()?;
                self.record(start, per_iteration, velocity, divergence, evaluation)?;
                bar.suspend(|| {
                    println!(
                        "{} steps: {:.3} units per second along the direction, {:.2} falls in 1000 steps",
                        self.iteration * per_iteration, evaluation.velocity, evaluation.falls
                    );
                });
                self.save()?;
            }
        }
        bar.finish_and_clear();
        println!("{}", self.expert_path().display());
        Ok(())
    }

    fn iterate(&mut self) -> anyhow::Result<(f64, f32)> {
        let experience = self.herd.walk(&self.learner, self.iteration, STRIDE, 1.0)?;
        let divergence = self.learner.learn(&experience, self.iteration)?;
        self.iteration += 1;
        Ok((experience.velocity, divergence))
    }

    /// Fresh ants, mean actions.
    fn evaluate(&self) -> anyhow::Result<Evaluation> {
        let model = Ant::model(&self.mujoco, self.maze)?;
        let seed = self.seed ^ 0x5eed;
        let mut herd = Herd::new(&model, Ground::new(self.maze), EVALUATION_ANTS, None, seed)?;
        let experience = herd.walk(&self.learner, 0, EVALUATION_STEPS, 0.0)?;
        let steps = (EVALUATION_ANTS * EVALUATION_STEPS) as f64;
        Ok(Evaluation {
            velocity: experience.velocity,
            falls: 1000.0 * experience.falls as f64 / steps,
        })
    }

    fn save(&self) -> anyhow::Result<()> {
        let expert = self.learner.expert()?;
        expert.save_safetensors(&self.expert_path())?;
        let checkpoint = Checkpoint {
            plan: self.plan.clone(),
            iteration: self.iteration,
            learning_rate: self.learner.learning_rate(),
            expert,
            optimiser: self.learner.optimiser()?,
            inputs: self.learner.inputs.clone(),
            courses: self.herd.courses().to_vec(),
        };
        checkpoint.save(&self.folder.join("checkpoint.bin"))
    }

    /// Appends a row to the metrics.
    fn record(
        &self,
        start: Instant,
        per_iteration: u64,
        velocity: f64,
        divergence: f32,
        evaluation: Evaluation,
    ) -> anyhow::Result<()> {
        use std::io::Write;
        let path = self.folder.join("metrics.csv");
        let context = || format!("could not write {}", path.display());
        let new = !path.exists();
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(context)?;
        if new {
            let header = "steps,seconds,velocity,training_velocity,falls,divergence,learning_rate";
            writeln!(file, "{header}").with_context(context)?;
        }
        writeln!(
            file,
            "{},{:.0},{:.4},{velocity:.4},{:.3},{divergence:.4},{:.2e}",
            self.iteration * per_iteration,
            start.elapsed().as_secs_f64(),
            evaluation.velocity,
            evaluation.falls,
            self.learner.learning_rate()
        )
        .with_context(context)
    }

    fn expert_path(&self) -> PathBuf {
        Path::new(&self.folder).join("expert.safetensors")
    }
}

/// Shown on a terminal, silent elsewhere.
fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} steps {per_sec} {eta} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps).with_style(style)
}
