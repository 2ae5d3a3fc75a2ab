//! The loop: sample, step, record, evaluate, checkpoint.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cm_envs::Rollout;
use cm_nn::{Backend, Snapshot};
use cm_policy::{Learner, Metrics};

use crate::batches::Batches;
use crate::record::{Events, Table};
use crate::{Checkpoint, Error, Evaluation, Result, RunFolder, RunSettings, Task, World, evaluate};

/// What happens in a run, for progress bars and live tables.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins, at a checkpoint if it is not the first time.
    Started {
        /// Steps done before.
        step: u64,
        /// Steps there will be.
        steps: u64,
    },
    /// Losses were recorded.
    Recorded {
        /// Steps done.
        step: u64,
    },
    /// The policy was evaluated.
    Evaluated {
        /// Steps done.
        step: u64,
        /// The share of episodes that reached their goals.
        success: f64,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Steps done.
    pub step: u64,
    /// Whether all of them are.
    pub finished: bool,
    /// The best evaluation: after which step, and its success rate.
    pub best: Option<(u64, f64)>,
    /// Where the time went, of this call alone.
    pub timings: Timings,
}

/// Where the time of a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Losses, gradients and optimisers.
    pub learning: Duration,
    /// Waiting for batches, which are drawn on a thread beside, and handing them to the backend.
    pub sampling: Duration,
    /// Recording and checkpoints.
    pub recording: Duration,
    /// Acting in the environment.
    pub evaluating: Duration,
}

impl Timings {
    /// The time spent beside the losses, evaluations apart, as a share of the time in them.
    pub fn overhead(&self) -> f64 {
        let beside = self.sampling + self.recording;
        beside.as_secs_f64() / self.learning.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Trains in `folder` until the steps are done or `stop` is set; goes on from the folder's checkpoint if there is one, and ends with one.
///
/// The same settings and task give the same numbers, in one go or in several. If a loss or a weight stops being finite, the run ends with
/// [`Error::Diverged`], and the last good checkpoint is kept.
pub fn train<B: Backend + 'static>(
    backend: &B,
    settings: &RunSettings,
    task: &Task,
    folder: &RunFolder,
    stop: &AtomicBool,
    mut watch: impl FnMut(Event),
) -> Result<Report> {
    settings.check()?;
    let mut run = Run::open(backend, settings, task, folder)?;
    watch(Event::Started { step: run.step, steps: settings.steps });
    let evaluated = run.evaluations.length() > 0;
    if run.step == 0 && run.evaluates() && !evaluated && !stop.load(Ordering::Relaxed) {
        run.evaluate(&mut watch)?;
    }
    while run.step < settings.steps && !stop.load(Ordering::Relaxed) {
        run.advance(&mut watch)?;
    }
    if run.checkpointed != Some(run.step) {
        run.checkpoint()?;
    }
    let Run { step, best, timings, .. } = run;
    Ok(Report { step, finished: step >= settings.steps, best, timings })
}

/// A run under way.
struct Run<'a, B: Backend> {
    backend: &'a B,
    settings: &'a RunSettings,
    task: &'a Task,
    folder: &'a RunFolder,
    learner: Box<dyn Learner<B>>,
    batches: Batches,
    metrics: Table,
    evaluations: Table,
    events: Events,
    step: u64,
    best: Option<(u64, f64)>,
    /// The step of the checkpoint on disk.
    checkpointed: Option<u64>,
    timings: Timings,
    /// Held as long as the run is under way.
    _lock: File,
}

impl<'a, B: Backend + 'static> Run<'a, B> {
    fn open(
        backend: &'a B,
        settings: &'a RunSettings,
        task: &'a Task,
        folder: &'a RunFolder,
    ) -> Result<Self> {
        let learner = settings.method.learner(backend, settings.seed, &task.dimensions)?;
        let lock = folder.lock()?;
        let checkpoint = folder.claim(settings)?;
        let (mut step, mut best, mut lengths) = (0, None, [0; 3]);
        let checkpointed = checkpoint.as_ref().map(|checkpoint| checkpoint.step);
        if let Some(checkpoint) = checkpoint {
            learner.restore(&checkpoint.parameters)?;
            learner.restore_optimiser(&checkpoint.optimiser)?;
            Checkpoint { step, best, lengths, .. } = checkpoint;
        }
        backend.set_step(step)?;
        let batches = Batches::new(settings, task, step)?;
        Ok(Self {
            metrics: Table::open(&folder.metrics_file(), lengths[0])?,
            evaluations: Table::open(&folder.evaluations_file(), lengths[1])?,
            events: Events::open(&folder.events_file(), lengths[2])?,
            backend,
            settings,
            task,
            folder,
            learner,
            batches,
            step,
            best,
            checkpointed,
            timings: Timings::default(),
            _lock: lock,
        })
    }

    fn evaluates(&self) -> bool {
        self.settings.evaluate_every > 0 && !matches!(self.task.world, World::None)
    }

    /// One step and whatever is due after it.
    fn advance(&mut self, watch: &mut impl FnMut(Event)) -> Result<()> {
        let RunSettings { steps, log_every, evaluate_every, checkpoint_every, .. } = *self.settings;
        let started = Instant::now();
        let batch = self.batches.next(self.backend)?;
        self.timings.sampling += started.elapsed();
        let started = Instant::now();
        let metrics = self.learner.step(&batch)?;
        self.timings.learning += started.elapsed();
        self.step += 1;

        let due = |every: u64| self.step.is_multiple_of(every) || self.step == steps;
        let (log, checkpoint) = (due(log_every), due(checkpoint_every));
        let evaluate = self.evaluates() && due(evaluate_every);
        if log {
            self.record(&metrics)?;
            watch(Event::Recorded { step: self.step });
        }
        if evaluate {
            self.evaluate(watch)?;
        }
        if checkpoint {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn record(&mut self, metrics: &Metrics<B>) -> Result<()> {
        let started = Instant::now();
        let mut values = Vec::with_capacity(metrics.len());
        for (name, metric) in metrics {
            let value = metric.item()?;
            if !value.is_finite() {
                return Err(self.diverged((*name).to_owned(), value));
            }
            values.push((*name, f64::from(value)));
        }
        self.metrics.push(self.step, &values)?;
        self.events.push(self.step, &values)?;
        self.timings.recording += started.elapsed();
        Ok(())
    }

    fn evaluate(&mut self, watch: &mut impl FnMut(Event)) -> Result<()> {
        let started = Instant::now();
        let plan = Rollout {
            episodes: self.settings.evaluation.episodes,
            seed: self.settings.evaluation.seed,
            paths: 0,
        };
        let Task { world, scaling, .. } = self.task;
        let Evaluation { success, mean_steps, .. } =
            evaluate(world, self.learner.as_ref(), self.backend, scaling, &plan)?;
        let values = [("success", success), ("mean_steps", mean_steps)];
        self.evaluations.push(self.step, &values)?;
        self.events.push(self.step, &values)?;
        if self.best.is_none_or(|(_, best)| success > best) {
            self.best = Some((self.step, success));
            let parameters = self.finite_parameters()?;
            RunFolder::save_model(&self.folder.best_file(), &parameters, scaling)?;
        }
        watch(Event::Evaluated { step: self.step, success });
        self.timings.evaluating += started.elapsed();
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let started = Instant::now();
        let parameters = self.finite_parameters()?;
        let optimiser = self.learner.optimiser_snapshot()?;
        RunFolder::save_model(&self.folder.model_file(), &parameters, &self.task.scaling)?;
        let lengths = [self.metrics.length(), self.evaluations.length(), self.events.length()];
        let Self { step, best, .. } = *self;
        let checkpoint = Checkpoint { step, parameters, optimiser, best, lengths };
        checkpoint.save(&self.folder.checkpoint_file())?;
        self.checkpointed = Some(self.step);
        self.timings.recording += started.elapsed();
        Ok(())
    }

    fn finite_parameters(&self) -> Result<Snapshot> {
        let parameters = self.learner.snapshot()?;
        for (name, matrix) in parameters.iter() {
            if let Some(&value) = matrix.values.iter().find(|value| !value.is_finite()) {
                return Err(self.diverged(format!("a weight of `{name}`"), value));
            }
        }
        Ok(parameters)
    }

    fn diverged(&self, what: String, value: f32) -> Error {
        let kept = match self.checkpointed {
            Some(step) => format!("the checkpoint of step {step} is kept"),
            None => "there is no checkpoint yet".to_owned(),
        };
        Error::Diverged { step: self.step, what, value, kept }
    }
}
