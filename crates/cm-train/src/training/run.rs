//! One run's folder while it is trained: its tables, its best model, its checkpoints.

use std::fs::File;

use cm_nn::Snapshot;

use super::{Replica, Report, Timings};
use crate::record::{Events, Table};
use crate::{Checkpoint, Device, Error, Evaluation, Result, RunFolder, RunSettings, Task};

/// A run under way.
pub(super) struct Run<'a> {
    pub(super) settings: &'a RunSettings,
    pub(super) task: &'a Task,
    folder: &'a RunFolder,
    metrics: Table,
    evaluations: Table,
    events: Events,
    pub(super) step: u64,
    best: Option<(u64, f64)>,
    /// The step of the checkpoint on disk.
    pub(super) checkpointed: Option<u64>,
    /// What was read of the checkpoint, until a learner has taken it.
    resume: Option<[Snapshot; 2]>,
    pub(super) timings: Timings,
    failure: Option<Error>,
    /// Held as long as the run is under way.
    _lock: File,
}

impl<'a> Run<'a> {
    /// Takes the folder, at its checkpoint if there is one, and notes the device.
    pub(super) fn open(replica: &Replica<'a>, device: Option<Device>) -> Result<Self> {
        let Replica { settings, task, folder } = *replica;
        settings.method.check()?;
        let lock = folder.lock()?;
        let checkpoint = folder.claim(settings)?;
        let (mut step, mut best, mut lengths, mut resume) = (0, None, [0; 3], None);
        let checkpointed = checkpoint.as_ref().map(|checkpoint| checkpoint.step);
        if let Some(checkpoint) = checkpoint {
            resume = Some([checkpoint.parameters, checkpoint.optimiser]);
            (step, best, lengths) = (checkpoint.step, checkpoint.best, checkpoint.lengths);
        }
        if let Some(device) = device.filter(|_| step < settings.steps) {
            folder.note_device(step, device)?;
        }
        Ok(Self {
            metrics: Table::open(&folder.metrics_file(), lengths[0])?,
            evaluations: Table::open(&folder.evaluations_file(), lengths[1])?,
            events: Events::open(&folder.events_file(), lengths[2])?,
            settings,
            task,
            folder,
            step,
            best,
            checkpointed,
            resume,
            timings: Timings::default(),
            failure: None,
            _lock: lock,
        })
    }

    /// Parameters and optimisers that a new learner goes on with; none at the beginning.
    pub(super) fn resume(&mut self) -> Result<Option<[Snapshot; 2]>> {
        if self.resume.is_none() && self.checkpointed.is_some() {
            let Checkpoint { parameters, optimiser, .. } =
                Checkpoint::load(&self.folder.checkpoint_file())?;
            self.resume = Some([parameters, optimiser]);
        }
        Ok(self.resume.take())
    }

    /// Whether there are steps to do and nothing has failed.
    pub(super) fn goes_on(&self) -> bool {
        self.failure.is_none() && self.step < self.settings.steps
    }

    /// Whether nothing has failed.
    pub(super) fn is_well(&self) -> bool {
        self.failure.is_none()
    }

    /// Notes the first failure; the run ends with it.
    pub(super) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    /// How it ended.
    pub(super) fn report(self) -> Result<Report> {
        let Self { step, best, timings, .. } = self;
        let finished = step >= self.settings.steps;
        self.failure.map_or(Ok(Report { step, finished, best, timings }), Err)
    }

    pub(super) fn evaluates(&self) -> bool {
        self.settings.evaluate_every > 0 && self.task.world.is_some()
    }

    /// Whether an evaluation is due before the first step.
    pub(super) fn begins_with_evaluation(&self) -> bool {
        self.step == 0 && self.evaluates() && self.evaluations.length() == 0
    }

    /// Writes losses down.
    pub(super) fn record(&mut self, values: &[(&str, f32)]) -> Result<()> {
        if let Some(&(name, value)) = values.iter().find(|(_, value)| !value.is_finite()) {
            return Err(self.diverged(name.to_owned(), value));
        }
        let values =
            values.iter().map(|&(name, value)| (name, f64::from(value))).collect::<Vec<_>>();
        self.metrics.push(self.step, &values)?;
        self.events.push(self.step, &values)
    }

    /// Writes an evaluation down, and the model if it is the best so far.
    pub(super) fn evaluated(&mut self, found: &Evaluation, parameters: &Snapshot) -> Result<()> {
        let success = found.success;
        let values = [("success", success), ("mean_steps", found.mean_steps)];
        self.evaluations.push(self.step, &values)?;
        self.events.push(self.step, &values)?;
        if self.best.is_none_or(|(_, best)| success > best) {
            self.best = Some((self.step, success));
            let file = self.folder.best_file();
            RunFolder::save_model(&file, parameters, &self.task.scaling)?;
        }
        Ok(())
    }

    /// Writes the model and the checkpoint.
    pub(super) fn checkpoint(&mut self, parameters: Snapshot, optimiser: Snapshot) -> Result<()> {
        self.check_finite(&parameters)?;
        RunFolder::save_model(&self.folder.model_file(), &parameters, &self.task.scaling)?;
        let lengths = [self.metrics.length(), self.evaluations.length(), self.events.length()];
        let Self { step, best, .. } = *self;
        let checkpoint = Checkpoint { step, parameters, optimiser, best, lengths };
        checkpoint.save(&self.folder.checkpoint_file())?;
        self.checkpointed = Some(step);
        Ok(())
    }

    /// Refuses parameters that are not finite.
    pub(super) fn check_finite(&self, parameters: &Snapshot) -> Result<()> {
        for (name, matrix) in parameters.iter() {
            if let Some(&value) = matrix.values.iter().find(|value| !value.is_finite()) {
                return Err(self.diverged(format!("a weight of `{name}`"), value));
            }
        }
        Ok(())
    }

    fn diverged(&self, what: String, value: f32) -> Error {
        let kept = match self.checkpointed {
            Some(step) => format!("the checkpoint of step {step} is kept"),
            None => "there is no checkpoint yet".to_owned(),
        };
        Error::Diverged { step: self.step, what, value, kept }
    }
}
