//! `cm sweep task`: one task of a job array, on a node.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, bail};

use super::super::folder::{Note, NoteState, SweepFolder, host};
use super::super::progress::Progress;
use super::super::work::Work;
use super::script::{AGAIN, STOPPED};
use super::submission::Submission;
use crate::interrupt;

#[derive(clap::Args)]
pub(crate) struct TaskArguments {
    /// Folder of all runs.
    out: PathBuf,
    /// Number of the submission.
    #[arg(long)]
    submission: u32,
    /// Place of the task in the array.
    #[arg(long)]
    index: usize,
}

/// Trains the runs of the task. How it exits tells the script whether to go back to the queue.
pub(crate) fn run(arguments: &TaskArguments) -> anyhow::Result<()> {
    let folder = SweepFolder::of(&arguments.out);
    let submission = Submission::of(&folder, arguments.submission);
    let tasks = submission.tasks()?;
    let names = tasks.runs.get(arguments.index).with_context(|| {
        format!("--index: expected less than {}, found {}", tasks.runs.len(), arguments.index)
    })?;
    let runs = names.iter().map(|name| submission.run(&arguments.out, name));
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let place = match std::env::var("SLURM_ARRAY_JOB_ID") {
        Ok(job) => format!("{}, task {job}_{}", host(), arguments.index),
        Err(_) => format!("{}, task {}", host(), arguments.index),
    };
    let work = Work {
        folder: &folder,
        device: crate::commands::device(tasks.device()?)?,
        workers: tasks.cpus as usize,
        place,
        stop: interrupt::listen(),
    };
    let steps = || runs.iter().map(|run| Progress::of(run).checkpointed).sum::<u64>();
    let before = steps();
    let outcome = work.train(&runs.iter().collect::<Vec<_>>())?;
    let retries = tasks.retries;
    let again = |name: &str| folder.note(name).is_none_or(|note| note.failures <= retries);
    let again =
        |failure: &super::super::work::Failure| failure.worth_another && again(&failure.name);
    let stopped = work.stop.load(Ordering::Relaxed);
    if folder.cancel_file().exists() {
        return Ok(());
    }
    if stopped && outcome.stopped > 0 {
        if steps() == before {
            // Going back to the queue would end the same way, for ever.
            for run in &runs {
                let note = folder.note(&run.name).unwrap_or_default();
                let error = Some("stopped before it had done a step".to_owned());
                folder.write_note(&run.name, &Note { state: NoteState::Failed, error, ..note });
            }
            bail!("stopped before any run had done a step; a longer time limit may help");
        }
        std::process::exit(STOPPED.into());
    }
    match outcome.failed.as_slice() {
        [] => Ok(()),
        failed => {
            failed.iter().for_each(|failure| eprintln!("{}: {}", failure.name, failure.error));
            if failed.iter().any(again) {
                std::process::exit(AGAIN.into());
            }
            bail!("{} of {} runs failed", failed.len(), runs.len())
        }
    }
}
