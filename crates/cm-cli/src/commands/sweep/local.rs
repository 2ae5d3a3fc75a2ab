//! `--on local`: all runs on this machine.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::Sweep;
use super::engine::{Engine, Place};
use super::folder::{NoteState, SweepLock, host};
use super::runs::PlannedRun;
use super::work::{Failure, Work};
use crate::interrupt;

/// This machine: as many runs at once as there are processors, or seeds together on one GPU.
pub(super) struct Local {
    pub(super) workers: Option<usize>,
}

impl Engine for Local {
    fn start(&self, sweep: &Sweep, missing: &[&PlannedRun], lock: SweepLock) -> anyhow::Result<()> {
        let device = crate::commands::device(sweep.plan.device)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match std::fs::remove_file(sweep.folder.cancel_file()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let work = Work {
            folder: &sweep.folder,
            device,
            workers: self.workers.unwrap_or(processors),
            place: format!("{}, process {}", host(), std::process::id()),
            stop: interrupt::listen(),
        };
        let mut failed: Vec<Failure> = Vec::new();
        let mut todo = missing.to_vec();
        for attempt in 0..=sweep.plan.retries {
            let outcome = work.train(&todo)?;
            let again = |failure: &Failure| failure.worth_another && attempt < sweep.plan.retries;
            let names = outcome.failed.iter().filter(|failure| again(failure));
            let names = names.map(|failure| failure.name.clone()).collect::<Vec<_>>();
            failed.extend(outcome.failed.into_iter().filter(|failure| !again(failure)));
            todo.retain(|run| names.contains(&run.name));
            if todo.is_empty() || work.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        drop(lock);
        if work.stop.load(Ordering::Relaxed) {
            bail!("stopped; the same command goes on from here");
        }
        super::report::write(sweep)?;
        match failed.as_slice() {
            [] => Ok(()),
            failed => {
                let lines =
                    failed.iter().map(|failure| format!("{}: {}", failure.name, failure.error));
                let lines = lines.collect::<Vec<_>>().join("\n  ");
                bail!("{} of {} runs failed:\n  {lines}", failed.len(), sweep.runs.len())
            }
        }
    }

    fn places(&self, sweep: &Sweep) -> anyhow::Result<BTreeMap<String, Place>> {
        let Some(holder) = sweep.folder.holder() else { return Ok(BTreeMap::new()) };
        let place = |run: &PlannedRun| {
            let note = sweep.folder.note(&run.name)?;
            let here = holder.split_whitespace().nth(1)?; // `process ID on HOST`
            let running = note.state == NoteState::Running
                && note.place.ends_with(&format!("process {here}"));
            let place = Place { running: true, name: note.place };
            running.then(|| (run.name.clone(), place))
        };
        Ok(sweep.runs.iter().filter_map(place).collect())
    }

    fn cancel(&self, sweep: &Sweep) -> anyhow::Result<usize> {
        if sweep.folder.holder().is_none() {
            return Ok(0);
        }
        let running = self.places(sweep)?.len();
        let file = sweep.folder.cancel_file();
        std::fs::write(&file, "")
            .with_context(|| format!("{}: could not be written", file.display()))?;
        // Checkpoints are written first; a large one on a slow disk takes a while.
        let started = Instant::now();
        while sweep.folder.holder().is_some() {
            if started.elapsed() > Duration::from_secs(120) {
                bail!("asked to stop two minutes ago, but the sweep is still at work");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = std::fs::remove_file(&file);
        Ok(running)
    }
}
