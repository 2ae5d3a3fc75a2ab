//! `cm train`.

use std::path::PathBuf;

use anyhow::{Context, bail};
use cm_envs::ant_maze;
use cm_train::{AntMazeTask, Device, Job, JobEvent, Report, TaskSettings, run_jobs};
use serde_json::json;

use crate::config::{ConfigArguments, environments};
use crate::interrupt;
use crate::progress::Progress;

const NOTES: &str = "Training again with the same settings goes on where it stopped.";

const EXAMPLES: &str = "Examples:
  cm train --env pointmaze --method cmd2 --steps 20000 --name plane
  cm train --data walks.csv --name walks --set method.cmd1.twin=false
  cm train --config runs/walks/config.toml --seed 1 --name walks-1
  cm train --env pointmaze --method qrl --print-config > qrl.toml";

#[derive(clap::Args)]
#[command(after_help = format!("{NOTES}\n\n{}\n\n{EXAMPLES}", environments()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Name of the run: its folder under --runs.
    #[arg(long, required_unless_present = "print_config")]
    name: Option<String>,
    /// Folder of all runs.
    #[arg(long, default_value = "runs")]
    runs: PathBuf,
    /// Train with this many seeds, from the settings' seed on, in folders NAME-SEED.
    #[arg(long)]
    seeds: Option<u64>,
    /// What to train on: `cpu`; `cuda` or `cuda:N`, a GPU; `auto`, a GPU if there is one. Behind the
    /// last three `,highest`, `,tf32` (the default) or `,bf16`: the precision of matrix products.
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// Runs at the same time; the number of processors if not given. One run alone uses all of them.
    #[arg(long)]
    workers: Option<usize>,
    /// Print the settings as TOML and stop.
    #[arg(long)]
    print_config: bool,
    /// Print the result as JSON, and no progress.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let settings = arguments.config.settings()?;
    if arguments.print_config {
        print!("{}", settings.to_toml());
        return Ok(());
    }
    check_data(&settings.task)?;
    let name = arguments.name.unwrap_or_default();
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        bail!("--name: expected the name of a folder, found `{name}`");
    }
    let jobs: Vec<Job> = match arguments.seeds {
        None => vec![Job { folder: arguments.runs.join(&name), settings }],
        Some(0) => bail!("--seeds: expected at least 1, found 0"),
        Some(count) => (settings.seed..settings.seed.saturating_add(count))
            .map(|seed| {
                let mut settings = settings.clone();
                settings.seed = seed;
                settings.task.set_data_seed(seed);
                Job { folder: arguments.runs.join(format!("{name}-{seed}")), settings }
            })
            .collect(),
    };
    let device = super::device(arguments.device)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = arguments.workers.unwrap_or(processors);
    let names = jobs
        .iter()
        .map(|job| job.folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let progress = Progress::new(names.collect(), arguments.json);
    let stop = interrupt::listen();
    let results = run_jobs(device, &jobs, workers, stop, |index, event| {
        // The error of a single run is the command's.
        if jobs.len() > 1 || !matches!(event, JobEvent::Ended(Err(_))) {
            progress.job(index, &event);
        }
    })?;
    let mut reports = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        // Interrupted before its turn.
        let Some(result) = result else { continue };
        reports.push((job, result.with_context(|| job.folder.display().to_string())?));
    }
    if arguments.json {
        let all: Vec<_> = reports.iter().map(|(job, report)| as_json(job, report)).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        reports.iter().for_each(|(job, report)| print(job, report));
    }
    Ok(())
}

/// Refuses AntMaze's data that was generated for another task of the same maze. Other mazes' is
/// refused by what is in it when it is opened, as OGBench's is.
fn check_data(task: &TaskSettings) -> anyhow::Result<()> {
    let Some(AntMazeTask { task, file, .. }) = task.get() else { return Ok(()) };
    Ok(cm_data::ensure_task(file, task.parse::<ant_maze::Task>()?.name())?)
}

fn print(job: &Job, report: &Report) {
    let state = match (report.finished, report.early) {
        (_, true) => "done, since held-out trajectories gain nothing more",
        (true, _) => "done",
        _ => "stopped; the same command goes on",
    };
    println!("{}: step {}, {state}", job.folder.display(), report.step);
    if let Some((step, success)) = report.best {
        println!("  best success {:.1} % at step {step}", 100.0 * success);
    }
    if let Some((step, loss)) = report.held_out {
        println!("  best held-out loss {loss:.3} at step {step}");
    }
    let timings = &report.timings;
    if !timings.learning.is_zero() {
        println!(
            "  learning {:.1} s, evaluating {:.1} s, everything else {:.2} % of learning",
            timings.learning.as_secs_f64(),
            timings.evaluating.as_secs_f64(),
            100.0 * timings.overhead()
        );
    }
}

fn as_json(job: &Job, report: &Report) -> serde_json::Value {
    let best = report.best.map(|(step, success)| json!({ "step": step, "success": success }));
    json!({
        "folder": job.folder,
        "method": job.settings.method.method().key(),
        "seed": job.settings.seed,
        "step": report.step,
        "finished": report.finished,
        "best": best,
        "early": report.early,
        "held_out": report.held_out.map(|(step, loss)| json!({ "step": step, "loss": loss })),
        "learning_seconds": report.timings.learning.as_secs_f64(),
        "evaluating_seconds": report.timings.evaluating.as_secs_f64(),
        "overhead": report.timings.overhead(),
    })
}
