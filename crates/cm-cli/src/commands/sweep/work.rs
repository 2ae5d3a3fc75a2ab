//! Runs trained here, by whichever engine, with notes of where and how they end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cm_train::{Device, Error, Event, Job, JobEvent, run_jobs};

use super::folder::{Note, NoteState, SweepFolder, now};
use super::runs::PlannedRun;
use crate::progress::Progress;

/// How runs ended, by their names.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) finished: usize,
    /// Stopped before their last step, or never begun.
    pub(super) stopped: usize,
    /// With their errors.
    pub(super) failed: Vec<Failure>,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) name: String,
    pub(super) error: String,
    /// Whether another attempt could end differently.
    pub(super) worth_another: bool,
}

/// What runs are trained with.
pub(super) struct Work<'a> {
    pub(super) folder: &'a SweepFolder,
    pub(super) device: Device,
    pub(super) workers: usize,
    /// As notes and `status` say it.
    pub(super) place: String,
    pub(super) stop: &'a AtomicBool,
}

impl Work<'_> {
    /// Trains the runs; a file that asks to stop is obeyed within a second.
    pub(super) fn train(&self, runs: &[&PlannedRun]) -> anyhow::Result<Outcome> {
        let jobs = runs.iter().map(|run| run.job.clone()).collect::<Vec<Job>>();
        let progress = Progress::new(runs.iter().map(|run| run.name.clone()).collect(), false);
        let notes = runs.iter().map(|run| self.folder.note(&run.name).unwrap_or_default());
        let notes = notes.map(Mutex::new).collect::<Vec<_>>();
        let over = AtomicBool::new(false);
        let results = std::thread::scope(|scope| {
            scope.spawn(|| self.obey_cancel(&over));
            let results = run_jobs(self.device, &jobs, self.workers, self.stop, |index, event| {
                progress.job(index, &event);
                if let Ok(mut note) = notes[index].lock() {
                    self.note(&runs[index].name, &mut note, &event);
                }
            });
            over.store(true, Ordering::Relaxed);
            results
        })?;
        let mut outcome = Outcome::default();
        for (run, result) in runs.iter().zip(results) {
            match result {
                Some(Ok(report)) if report.finished => outcome.finished += 1,
                Some(Ok(_)) | None => outcome.stopped += 1,
                Some(Err(error)) => outcome.failed.push(Failure {
                    name: run.name.clone(),
                    error: error.to_string(),
                    worth_another: !matches!(
                        error,
                        Error::Diverged { .. } | Error::OtherRun { .. } | Error::Setting { .. }
                    ),
                }),
            }
        }
        Ok(outcome)
    }

    fn note(&self, name: &str, note: &mut Note, event: &JobEvent<'_>) {
        match event {
            JobEvent::Run(Event::Started { step, .. }) => {
                (note.place, note.started, note.from) = (self.place.clone(), now(), *step);
                note.state = NoteState::Running;
            }
            JobEvent::Run(_) => return,
            // Whoever trains it writes its note.
            JobEvent::Ended(Err(Error::Busy { .. })) => return,
            JobEvent::Ended(Err(error)) => {
                note.state = NoteState::Failed;
                note.failures += 1;
                note.error.get_or_insert_with(|| error.to_string());
            }
            JobEvent::Ended(Ok(report)) if report.finished => {
                note.state = NoteState::Finished;
                note.error = None;
            }
            JobEvent::Ended(Ok(_)) => note.state = NoteState::Stopped,
        }
        self.folder.write_note(name, note);
    }

    fn obey_cancel(&self, over: &AtomicBool) {
        let file = self.folder.cancel_file();
        let mut waited = 0;
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
            waited += 1;
            if waited % 50 == 0 && file.exists() {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}
