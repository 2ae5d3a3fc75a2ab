//! `--dry-run`: the runs, how long they will take and how large they will be.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cm_train::{Device, Event, RunFolder, RunSettings, job_groups, train};

use super::Sweep;
use super::progress::Progress;
use super::runs::PlannedRun;
use super::status::duration;

/// How long steps of each kind of run are tried.
const TRIAL: Duration = Duration::from_millis(1_500);
/// Episodes of the evaluation that is tried.
const EPISODES: usize = 20;

/// What one run costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

/// Prints every run, what it would cost, and the sum. Runs that differ in their seed alone cost the
/// same; one of each kind is tried for a moment on this machine.
pub(super) fn print(sweep: &Sweep, workers: usize) -> anyhow::Result<()> {
    let jobs = sweep.runs.iter().map(|run| run.job.clone()).collect::<Vec<_>>();
    let groups = job_groups(&jobs, None);
    let mut costs = vec![None; jobs.len()];
    let mut reasons = Vec::new();
    for group in &groups {
        match trial(sweep.plan.device, &jobs[group[0]].settings) {
            Ok(cost) => group.iter().for_each(|&index| costs[index] = Some(cost)),
            Err(error) => reasons.push(format!("{}: {error:#}", sweep.runs[group[0]].name)),
        }
    }
    let width = sweep.runs.iter().map(|run| run.name.len()).max().unwrap_or(0);
    for (run, cost) in sweep.runs.iter().zip(&costs) {
        println!("{:width$}  {}", run.name, line(run, *cost));
    }
    let left = |run: &PlannedRun| {
        let progress = Progress::of(run);
        let left = progress.steps.saturating_sub(progress.checkpointed);
        left as f64 / progress.steps.max(1) as f64
    };
    let known = sweep.runs.iter().zip(&costs).filter_map(|(run, cost)| Some((run, (*cost)?)));
    let seconds: f64 = known.clone().map(|(run, cost)| cost.seconds * left(run)).sum();
    let bytes: f64 = known.map(|(_, cost)| cost.bytes).sum();
    let (runs, kinds) = (jobs.len(), groups.len());
    println!("{runs} runs of {kinds} kinds in {}", sweep.plan.out.display());
    if reasons.len() < kinds {
        println!(
            "what is missing: about {} one after another, {} with {workers} at once; {} in all",
            duration(seconds),
            duration(seconds / workers.min(runs).max(1) as f64),
            size(bytes)
        );
    }
    for reason in reasons {
        println!("no estimate: {reason}");
    }
    Ok(())
}

fn line(run: &PlannedRun, cost: Option<Cost>) -> String {
    let progress = Progress::of(run);
    let state = match (&progress.error, progress.checkpointed) {
        (Some(error), _) => error.clone(),
        (None, _) if progress.finished() => "done".to_owned(),
        (None, 0) => "to do".to_owned(),
        (None, step) => format!("from step {step} on"),
    };
    let cost =
        cost.map(|Cost { seconds, bytes }| format!("{}, {}", duration(seconds), size(bytes)));
    let cost = cost.unwrap_or_else(|| "no estimate".to_owned());
    format!("{} steps  {cost}  {state}", run.job.settings.steps)
}

/// Trains for a moment in a folder that is thrown away.
fn trial(device: Device, settings: &RunSettings) -> anyhow::Result<Cost> {
    let scratch = Scratch::new()?;
    let mut short = settings.clone();
    (short.steps, short.log_every, short.checkpoint_every) = (u64::MAX, 1, u64::MAX);
    let evaluated = settings.evaluate_every > 0;
    short.evaluation.episodes = settings.evaluation.episodes.min(EPISODES);
    short.evaluate_every = if evaluated { u64::MAX } else { 0 };
    let task = short.task.open()?;
    let folder = RunFolder::new(&scratch.0);
    let stop = AtomicBool::new(false);
    // The first step makes what later ones reuse; it is left out of the pace.
    let mut first = None;
    let report = train(device, &short, &task, &folder, &stop, |event| {
        if let Event::Recorded { .. } = event {
            let started = *first.get_or_insert_with(Instant::now);
            stop.store(started.elapsed() > TRIAL, Ordering::Relaxed);
        }
    })?;
    let stepping = first.map_or(Duration::ZERO, |first: Instant| first.elapsed());
    let step = stepping.as_secs_f64() / report.step.saturating_sub(1).max(1) as f64;
    let episodes = short.evaluation.episodes.max(1) as f64;
    let evaluation =
        report.timings.evaluating.as_secs_f64() / episodes * settings.evaluation.episodes as f64;
    let evaluations = match settings.evaluate_every {
        0 => 0.0,
        every => (settings.steps / every + 1) as f64,
    };
    let evaluations = if task.world.is_some() { evaluations } else { 0.0 };
    let rows = |steps: u64, every: u64| (steps / every.max(1)) as f64;
    let tables = folder_size(&scratch.0, &["csv", "run"]) / report.step.max(1) as f64
        * rows(settings.steps, settings.log_every);
    Ok(Cost {
        seconds: step * settings.steps as f64 + evaluation * evaluations,
        bytes: folder_size(&scratch.0, &["bin", "safetensors", "toml"]) + tables,
    })
}

/// Bytes of the files with these extensions.
fn folder_size(folder: &Path, extensions: &[&str]) -> f64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let counted = files.filter(|file| {
        let path = file.path();
        path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted))
    });
    counted.filter_map(|file| file.metadata().ok()).map(|meta| meta.len() as f64).sum()
}

fn size(bytes: f64) -> String {
    match bytes {
        _ if bytes < 1e6 => format!("{:.0} kB", (bytes / 1e3).max(1.0)),
        _ if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} GB", bytes / 1e9),
    }
}

/// A folder in the system's place for such, removed with everything in it.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("cm-sweep-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
