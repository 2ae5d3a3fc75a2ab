//! One run's folder while it is trained: its tables, its best model, its checkpoints.

use std::fs::File;
use std::time::Instant;

use cm_nn::Snapshot;

use super::evaluation::{Found, Pending, evaluate};
use super::writing::Writing;
use super::{Replica, Report, Timings};
use crate::finish::finish;
use crate::held_out::Validator;
use crate::record::{Events, Table};
use crate::{
    Checkpoint, Device, Error, Evaluation, Result, RunFolder, RunSettings, Task, Validation,
    read_evaluations,
};

/// A run under way.
pub(super) struct Run<'a> {
    pub(super) settings: &'a RunSettings,
    pub(super) task: &'a Task,
    folder: &'a RunFolder,
    /// Where road maps are made.
    device: Device,
    metrics: Table,
    evaluations: Table,
    events: Events,
    pub(super) step: u64,
    best: Option<(u64, f64)>,
    /// The step of the last evaluation that was written down.
    evaluated: Option<u64>,
    /// An evaluation under way.
    pending: Option<Pending>,
    /// The step of the checkpoint on disk.
    checkpointed: Option<u64>,
    /// A checkpoint on its way there.
    writing: Option<Writing>,
    /// What was read of the checkpoint, until a learner has taken it.
    resume: Option<[Snapshot; 2]>,
    pub(super) timings: Timings,
    /// Batches of held-out trajectories, if they are looked at.
    pub(super) validator: Option<Validator>,
    /// Whether the loss on held-out trajectories has fallen no more for long enough.
    early: bool,
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
        let evaluates = settings.evaluate_every > 0 && task.world.is_some();
        let validator = match settings.held_out.every > 0 && !evaluates {
            true => Validator::new(settings, task)?,
            false => None,
        };
        folder.cut_notes(step)?;
        let evaluations = Table::open(&folder.evaluations_file(), lengths[1])?;
        let rows = read_evaluations(&folder.evaluations_file())?;
        let mut run = Self {
            metrics: Table::open(&folder.metrics_file(), lengths[0])?,
            evaluations,
            events: Events::open(&folder.events_file(), lengths[2])?,
            settings,
            task,
            folder,
            device: device.unwrap_or_default(),
            step,
            best,
            evaluated: rows.last().map(|row| row.step),
            pending: None,
            checkpointed,
            writing: None,
            resume,
            timings: Timings::default(),
            validator,
            early: false,
            failure: None,
            _lock: lock,
        };
        run.early = run.out_of_patience();
        Ok(run)
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
        self.is_well() && self.step < self.settings.steps
    }

    /// Whether nothing has failed and it has not ended early.
    pub(super) fn is_well(&self) -> bool {
        self.failure.is_none() && !self.early
    }

    /// Notes the first failure; the run ends with it.
    pub(super) fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    /// How it ended.
    pub(super) fn report(self) -> Result<Report> {
        let Self { step, best, timings, early, .. } = self;
        let finished = early || step >= self.settings.steps;
        let (best, held_out) = match self.validator {
            Some(_) => (None, best.map(|(step, value)| (step, -value))),
            None => (best, None),
        };
        self.failure.map_or(Ok(Report { step, finished, early, held_out, best, timings }), Err)
    }

    /// What the models need beside their weights, when all steps are done.
    pub(super) fn finish(&mut self) {
        if self.failure.is_none() && (self.early || self.step >= self.settings.steps) {
            let finished = finish(self.folder, self.settings, self.task);
            self.note(finished);
            let planned = self.plan_last();
            self.note(planned);
        }
    }

    /// Whether so many looks were without a smaller loss that training ends.
    fn out_of_patience(&self) -> bool {
        let crate::HeldOut { every, patience, .. } = self.settings.held_out;
        let looks = |(best, _): (u64, f64)| (self.step.saturating_sub(best)) / every.max(1);
        let late = self.best.is_some_and(|best| looks(best) >= patience);
        self.validator.is_some() && patience > 0 && late
    }

    /// Writes down what held-out trajectories say, and the model if it is the best so far. Returns
    /// whether training ends.
    pub(super) fn validated(&mut self, found: &Validation, parameters: &Snapshot) -> Result<bool> {
        let values = [
            ("held_out_loss", found.held_out.loss),
            ("training_loss", found.training.loss),
            ("held_out_accuracy", found.held_out.accuracy),
            ("training_accuracy", found.training.accuracy),
        ];
        if !found.held_out.loss.is_finite() {
            let loss = found.held_out.loss as f32;
            return Err(self.diverged("the loss on held-out trajectories".to_owned(), loss));
        }
        self.folder.note_validation(self.step, &values)?;
        self.events.push(self.step, &values)?;
        // The larger the better, as with evaluations.
        let value = -found.held_out.loss;
        if self.best.is_none_or(|(_, best)| value > best + self.settings.held_out.least) {
            self.best = Some((self.step, value));
            RunFolder::save_model(&self.folder.best_file(), parameters, &self.task.scaling)?;
        }
        Ok(self.out_of_patience())
    }

    /// Ends the run before its last step.
    pub(super) fn end_early(&mut self) {
        self.early = true;
    }

    pub(super) fn evaluates(&self) -> bool {
        self.settings.evaluate_every > 0 && self.task.world.is_some()
    }

    /// Whether the weights that it is at should be evaluated and were not: before the first step,
    /// or if it was stopped while they acted.
    pub(super) fn begins_with_evaluation(&self) -> bool {
        let RunSettings { evaluate_every, steps, evaluation, .. } = *self.settings;
        let known = [self.evaluated, self.pending.as_ref().map(Pending::step)];
        self.evaluates()
            && (evaluation.untrained || self.step > 0)
            && (self.step.is_multiple_of(evaluate_every) || self.step == steps)
            && !known.contains(&Some(self.step))
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

    /// Lets the policy act with these weights while training goes on.
    pub(super) fn begin_evaluation(&mut self, parameters: Snapshot) -> Result<()> {
        self.check_finite(&parameters)?;
        self.pending =
            Some(Pending::start((self.settings, self.device), self.task, self.step, parameters)?);
        Ok(())
    }

    /// Whether a policy of an earlier step still acts.
    pub(super) fn is_evaluating(&self) -> bool {
        self.pending
            .as_ref()
            .is_some_and(|pending| pending.step() < self.step && !pending.is_done())
    }

    /// Waits for the evaluation under way, unless it is of a step from `before` on, and writes it
    /// down, and the model if it is the best so far. Returns its step, its success rate and that on
    /// the road map.
    pub(super) fn end_evaluation(
        &mut self,
        before: u64,
    ) -> Result<Option<(u64, f64, Option<f64>)>> {
        let Some(pending) = self.pending.take_if(|pending| pending.step() < before) else {
            return Ok(None);
        };
        let (started, step) = (Instant::now(), pending.step());
        let Found { straight, planned, parameters } = pending.wait()?;
        self.timings.evaluating += started.elapsed();
        let Some(straight) = straight else { return Ok(None) };
        let success = straight.success;
        let values = columns(&straight);
        let values: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        self.evaluations.push(step, &values)?;
        self.events.push(step, &values)?;
        self.evaluated = Some(step);
        if let Some((found, _)) = &planned {
            self.note_planned(step, found)?;
        }
        if self.best.is_none_or(|(_, best)| success > best) {
            self.best = Some((step, success));
            let file = self.folder.best_file();
            RunFolder::save_model(&file, &parameters, &self.task.scaling)?;
            if let Some((_, map)) = &planned {
                map.save(&self.folder.map_file(true))?;
            }
        }
        if let Some((_, map)) = planned.as_ref().filter(|_| step >= self.settings.steps) {
            map.save(&self.folder.map_file(false))?;
        }
        Ok(Some((step, success, planned.map(|(found, _)| found.success))))
    }

    fn note_planned(&mut self, step: u64, found: &Evaluation) -> Result<()> {
        let mut values = columns(found);
        if let Some(walked) = found.walked {
            let each = found.outcomes.len().max(1) as f64;
            values.push(("no_way".to_owned(), walked.no_way as f64 / each));
            values.push(("replanned".to_owned(), walked.replanned as f64 / each));
        }
        let plain: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        self.folder.note_planned(step, &plain)?;
        let named: Vec<_> =
            values.iter().map(|(name, value)| (format!("planned/{name}"), *value)).collect();
        let named: Vec<_> = named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        self.events.push(step, &named)
    }

    /// Evaluates the last model on a road map if the settings ask for it and it was not: the plan
    /// came after the training. Its map is kept.
    fn plan_last(&mut self) -> Result<()> {
        let file = self.folder.planned_file();
        let known = match file.exists() {
            true => read_evaluations(&file)?.last().map(|row| row.step),
            false => None,
        };
        if self.settings.plan.is_none() || !self.evaluates() || known == Some(self.step) {
            return Ok(());
        }
        let Checkpoint { parameters, .. } = Checkpoint::load(&self.folder.checkpoint_file())?;
        let Found { planned, .. } =
            evaluate((self.settings, self.device), self.task, parameters, false)?;
        if let Some((found, map)) = planned {
            self.note_planned(self.step, &found)?;
            map.save(&self.folder.map_file(false))?;
        }
        Ok(())
    }

    /// Begins to write the model and the checkpoint, when those before are on the disk.
    pub(super) fn checkpoint(&mut self, parameters: Snapshot, optimiser: Snapshot) -> Result<()> {
        self.check_finite(&parameters)?;
        self.end_checkpoint()?;
        let lengths = [self.metrics.length(), self.evaluations.length(), self.events.length()];
        let Self { step, best, .. } = *self;
        let checkpoint = Checkpoint { step, parameters, optimiser, best, lengths };
        self.writing = Some(Writing::start(self.folder, self.task, checkpoint)?);
        Ok(())
    }

    /// Waits for the checkpoint under way.
    pub(super) fn end_checkpoint(&mut self) -> Result<()> {
        if let Some(writing) = self.writing.take() {
            self.checkpointed = Some(writing.wait()?);
        }
        Ok(())
    }

    /// Whether all that it learned is on the disk.
    pub(super) fn is_checkpointed(&self) -> bool {
        self.checkpointed == Some(self.step)
    }

    /// Refuses parameters that are not finite.
    pub(super) fn check_finite(&mut self, parameters: &Snapshot) -> Result<()> {
        for (name, matrix) in parameters.iter() {
            if let Some(&value) = matrix.values.iter().find(|value| !value.is_finite()) {
                return Err(self.diverged(format!("a weight of `{name}`"), value));
            }
        }
        Ok(())
    }

    fn diverged(&mut self, what: String, value: f32) -> Error {
        let written = self.end_checkpoint();
        if let Err(error) = written {
            return error;
        }
        let kept = match self.checkpointed {
            Some(step) => format!("the checkpoint of step {step} is kept"),
            None => "there is no checkpoint yet".to_owned(),
        };
        Error::Diverged { step: self.step, what, value, kept }
    }
}

/// An evaluation as named columns.
fn columns(found: &Evaluation) -> Vec<(String, f64)> {
    let mut values =
        vec![("success".to_owned(), found.success), ("mean_steps".to_owned(), found.mean_steps)];
    let tasks = found.tasks.iter().enumerate();
    values.extend(tasks.map(|(task, success)| (format!("task_{}", task + 1), *success)));
    values
}
