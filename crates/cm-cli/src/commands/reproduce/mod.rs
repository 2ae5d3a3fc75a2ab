//! `cm reproduce`: experiments of the paper from one command.

mod ant_maze;
mod point_maze;
mod report;
mod study;

use std::sync::atomic::Ordering;

use anyhow::bail;
use cm_train::{Device, Job, run_jobs};

use crate::interrupt;
use crate::progress::Progress;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
    /// What to train on: `cpu`.
    #[arg(long, default_value = "cpu", global = true)]
    device: Device,
}

#[derive(clap::Subcommand)]
enum Experiment {
    /// The 2-D navigation experiment: Figures 2 and 3.
    Pointmaze(point_maze::Arguments),
    /// The table on D4RL's AntMaze.
    Antmaze(ant_maze::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { experiment, device } = arguments;
    match experiment {
        Experiment::Pointmaze(arguments) => point_maze::run(&arguments, device),
        Experiment::Antmaze(arguments) => ant_maze::run(&arguments, device),
    }
}

/// Trains with progress bars, `workers` at a time or as many as there are processors. A run that fails does not stop the others.
fn train(
    device: Device,
    jobs: &[Job],
    names: Vec<String>,
    workers: Option<usize>,
) -> anyhow::Result<()> {
    let progress = Progress::new(names, false);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = interrupt::listen();
    let workers = workers.unwrap_or(processors);
    let results = run_jobs(device, jobs, workers, stop, |i, event| progress.job(i, &event))?;
    drop(progress);
    for (job, result) in jobs.iter().zip(&results) {
        if let Some(Err(error)) = result {
            eprintln!("{}: {error}", job.folder.display());
        }
    }
    if stop.load(Ordering::Relaxed) {
        bail!("interrupted; the same command goes on from here");
    }
    if results.iter().flatten().all(Result::is_err) {
        bail!("every run failed");
    }
    Ok(())
}
