//! Runs that are at the same step, trained by one learner.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cm_learner::{BatchSource, Learner, Metrics};
use cm_nn::{Backend, Captured, DfdxBackend, Snapshot, Var};

use super::{Event, Run, Setup, Timings};
use crate::{Result, RunSettings, Validation};

/// Several runs on one backend: replica `i` of the backend is the run `members[i]`.
pub(super) struct Cohort<'m, B: Backend> {
    members: &'m [usize],
    settings: RunSettings,
    learner: Rc<dyn Learner<B>>,
    /// Looks at held-out trajectories, on the CPU whatever the backend.
    actor: Actor,
    batches: Rc<dyn BatchSource<B>>,
    captured: Captured<'static, Metrics<B>>,
    step: u64,
}

/// A learner on the CPU that is given a replica's weights.
struct Actor {
    backend: DfdxBackend,
    learner: Box<dyn Learner<DfdxBackend>>,
}

impl<'m, B: Backend> Cohort<'m, B> {
    /// The runs `members`, all at the same step, with what their checkpoints hold.
    pub(super) fn new(
        setup: &impl Setup<Backend = B>,
        backend: &B,
        runs: &mut [Run<'_>],
        members: &'m [usize],
    ) -> Result<Self> {
        let first = &runs[members[0]];
        let (settings, step) = (first.settings.clone(), first.step);
        let dimensions = first.task.dimensions.clone();
        let learner = Rc::from(settings.method.learner(backend, &dimensions)?);
        let cpu = DfdxBackend::new(settings.seed);
        let actor = Actor { learner: settings.method.learner(&cpu, &dimensions)?, backend: cpu };
        backend.set_step(step)?;
        let replicas = members.iter().map(|&member| (runs[member].settings, runs[member].task));
        let batches = setup.batches(backend, replicas.collect(), step)?;
        let captured = capture(backend, &learner, &batches);
        let cohort = Self { members, settings, learner, actor, batches, captured, step };
        cohort.resume(runs)?;
        Ok(cohort)
    }

    fn resume(&self, runs: &mut [Run<'_>]) -> Result<()> {
        for (replica, &member) in self.members.iter().enumerate() {
            if let Some([parameters, optimiser]) = runs[member].resume()? {
                self.learner.restore(replica, &parameters)?;
                self.learner.restore_optimiser(replica, &optimiser)?;
            }
        }
        Ok(())
    }

    /// Evaluates the runs that begin, before their first step.
    pub(super) fn begin(
        &mut self,
        runs: &mut [Run<'_>],
        stop: &AtomicBool,
        watch: &mut impl FnMut(usize, Event),
    ) -> Result<()> {
        let begins = |run: &Run<'_>| run.begins_with_evaluation();
        if self.members.iter().any(|&member| begins(&runs[member])) && !stop.load(Ordering::Relaxed)
        {
            self.evaluate(runs, begins, watch)?;
        }
        Ok(())
    }

    /// Trains to the step `until`, or until all runs have failed or `stop` is set, and ends with a
    /// checkpoint. Between two due steps nothing looks at the device.
    pub(super) fn advance(
        &mut self,
        runs: &mut [Run<'_>],
        until: u64,
        stop: &AtomicBool,
        watch: &mut impl FnMut(usize, Event),
    ) -> Result<()> {
        let steps = self.settings.steps;
        let mut is_late = false;
        while self.step < until && !stop.load(Ordering::Relaxed) && self.any_well(runs) {
            let (before, due) = (self.step, self.next_due(runs).min(until));
            let values = self.run_to(runs, due, stop)?;
            if self.step == before {
                break;
            }
            let at = |every: u64| self.step.is_multiple_of(every) || self.step == steps;
            let RunSettings { log_every, evaluate_every, checkpoint_every, .. } = self.settings;
            let (log, save) = (at(log_every), at(checkpoint_every) || is_late);
            let evaluate = self.any_evaluates(runs) && at(evaluate_every);
            if log {
                self.record(runs, &values, watch);
            }
            if evaluate {
                self.evaluate(runs, |run| run.evaluates(), watch)?;
            }
            let ends = self.validate(runs, watch)?;
            // A checkpoint knows the evaluations before it; it comes later rather than wait.
            is_late = save && self.step < steps && self.any_is_evaluating(runs);
            if (save && !is_late) || !ends.is_empty() {
                self.checkpoint(runs, watch)?;
            }
            ends.into_iter().for_each(|member| runs[member].end_early());
        }
        self.end_checkpoints(runs);
        let done = |run: &Run<'_>| !run.is_well() || run.is_checkpointed();
        if !self.members.iter().all(|&member| done(&runs[member])) {
            self.checkpoint(runs, watch)?;
            self.end_checkpoints(runs);
        }
        Ok(())
    }

    fn any_well(&self, runs: &[Run<'_>]) -> bool {
        self.members.iter().any(|&member| runs[member].is_well())
    }

    fn any_is_evaluating(&self, runs: &[Run<'_>]) -> bool {
        self.members.iter().any(|&member| runs[member].is_well() && runs[member].is_evaluating())
    }

    fn any_evaluates(&self, runs: &[Run<'_>]) -> bool {
        self.members.iter().any(|&member| runs[member].evaluates())
    }

    /// The next step after which something is due.
    fn next_due(&self, runs: &[Run<'_>]) -> u64 {
        let RunSettings { steps, log_every, evaluate_every, checkpoint_every, .. } = self.settings;
        let next = |every: u64| (self.step / every + 1).saturating_mul(every);
        let evaluation = if self.any_evaluates(runs) { next(evaluate_every) } else { steps };
        let looks = self.members.iter().any(|&member| runs[member].validator.is_some());
        let look = if looks { next(self.settings.held_out.every.max(1)) } else { steps };
        next(log_every).min(next(checkpoint_every)).min(evaluation).min(look).min(steps)
    }

    /// Steps until `due` or `stop`; returns the metrics of the last one, by replica. Reading them
    /// is the one wait for the device.
    fn run_to(
        &mut self,
        runs: &mut [Run<'_>],
        due: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Vec<(&'static str, f32)>>> {
        let started = Instant::now();
        let mut timings = Timings::default();
        while self.step < due && !stop.load(Ordering::Relaxed) {
            let sampled = Instant::now();
            self.batches.prepare()?;
            timings.sampling += sampled.elapsed();
            self.captured.run()?;
            self.step += 1;
        }
        let metrics = self.captured.output().map_or(&[][..], Vec::as_slice);
        let values = Var::read(&metrics.iter().map(|(_, metric)| metric).collect::<Vec<_>>())?;
        timings.learning = started.elapsed().saturating_sub(timings.sampling);
        for &member in self.members {
            let run = &mut runs[member];
            // A run that ended early stays where it was.
            if run.is_well() {
                run.step = self.step;
                run.timings.sampling += timings.sampling;
                run.timings.learning += timings.learning;
            }
        }
        let replica = |replica: usize| {
            let names = metrics.iter().map(|(name, _)| *name);
            let values = values.iter().map(|values| values.replica(replica));
            names.zip(values.map(|value| value.first().copied().unwrap_or(f32::NAN))).collect()
        };
        Ok((0..self.members.len()).map(replica).collect())
    }

    fn record(
        &self,
        runs: &mut [Run<'_>],
        values: &[Vec<(&'static str, f32)>],
        watch: &mut impl FnMut(usize, Event),
    ) {
        for (&member, values) in self.members.iter().zip(values) {
            let run = &mut runs[member];
            if !run.is_well() {
                continue;
            }
            let started = Instant::now();
            let recorded = run.record(values);
            run.note(recorded);
            run.timings.recording += started.elapsed();
            if run.is_well() {
                watch(member, Event::Recorded { step: run.step });
            }
        }
    }

    /// Lets the policies of the runs that are `due` act in their worlds, all at once and while
    /// training goes on.
    fn evaluate(
        &self,
        runs: &mut [Run<'_>],
        due: impl Fn(&Run<'_>) -> bool,
        watch: &mut impl FnMut(usize, Event),
    ) -> Result<()> {
        self.end_evaluations(runs, u64::MAX, watch);
        let snapshots = self.learner.parameters().snapshots()?;
        for (&member, parameters) in self.members.iter().zip(snapshots) {
            let run = &mut runs[member];
            if run.is_well() && due(run) {
                let begun = run.begin_evaluation(parameters);
                run.note(begun);
            }
        }
        Ok(())
    }

    /// Waits for evaluations of steps before `before`.
    fn end_evaluations(
        &self,
        runs: &mut [Run<'_>],
        before: u64,
        watch: &mut impl FnMut(usize, Event),
    ) {
        for &member in self.members {
            let run = &mut runs[member];
            match run.end_evaluation(before) {
                Ok(Some((step, success, planned))) => {
                    watch(member, Event::Evaluated { step, success, planned });
                }
                Ok(None) => {}
                Err(error) => run.note(Err(error)),
            }
        }
    }

    /// Looks at held-out trajectories where that is due; returns the runs that end with it.
    fn validate(
        &self,
        runs: &mut [Run<'_>],
        watch: &mut impl FnMut(usize, Event),
    ) -> Result<Vec<usize>> {
        let due = |run: &Run<'_>| {
            let every = run.settings.held_out.every.max(1);
            let at = self.step.is_multiple_of(every) || self.step == run.settings.steps;
            run.is_well() && run.validator.is_some() && at
        };
        if !self.members.iter().any(|&member| due(&runs[member])) {
            return Ok(Vec::new());
        }
        let started = Instant::now();
        let snapshots = self.learner.parameters().snapshots()?;
        let mut ends = Vec::new();
        for (&member, parameters) in self.members.iter().zip(&snapshots) {
            let run = &mut runs[member];
            if !due(run) {
                continue;
            }
            match self.look(run, parameters) {
                Ok(Some((found, end))) => {
                    watch(member, Event::Validated { step: run.step, found });
                    ends.extend(end.then_some(member));
                }
                Ok(None) => run.validator = None,
                Err(error) => run.note(Err(error)),
            }
            run.timings.evaluating += started.elapsed() / self.members.len() as u32;
        }
        Ok(ends)
    }

    fn look(&self, run: &mut Run<'_>, parameters: &Snapshot) -> Result<Option<(Validation, bool)>> {
        run.check_finite(parameters)?;
        let Some(validator) = &run.validator else { return Ok(None) };
        self.actor.learner.restore(0, parameters)?;
        let found = validator.look(&self.actor.backend, self.actor.learner.as_ref())?;
        let Some(found) = found else { return Ok(None) };
        let end = run.validated(&found, parameters)?;
        Ok(Some((found, end)))
    }

    /// Begins to write checkpoints. They know all evaluations but those of this very step, with
    /// whose weights a run that goes on from there begins anew; the last one knows all.
    fn checkpoint(&self, runs: &mut [Run<'_>], watch: &mut impl FnMut(usize, Event)) -> Result<()> {
        let is_last = self.step >= self.settings.steps;
        self.end_evaluations(runs, if is_last { u64::MAX } else { self.step }, watch);
        let started = Instant::now();
        let parameters = self.learner.parameters().snapshots()?;
        let optimisers = self.learner.optimiser_state().snapshots()?;
        let mut reading = started.elapsed();
        let snapshots = parameters.into_iter().zip(optimisers);
        for (&member, (parameters, optimiser)) in self.members.iter().zip(snapshots) {
            let run = &mut runs[member];
            if !run.is_well() {
                continue;
            }
            let started = Instant::now();
            let saved = run.checkpoint(parameters, optimiser);
            run.note(saved);
            run.timings.recording += started.elapsed() + std::mem::take(&mut reading);
        }
        Ok(())
    }

    /// Waits until checkpoints are on the disk.
    fn end_checkpoints(&self, runs: &mut [Run<'_>]) {
        for &member in self.members {
            let run = &mut runs[member];
            let started = Instant::now();
            let written = run.end_checkpoint();
            run.note(written);
            run.timings.recording += started.elapsed();
        }
    }
}

/// The training step, which begins with the rows to learn from.
fn capture<B: Backend>(
    backend: &B,
    learner: &Rc<dyn Learner<B>>,
    batches: &Rc<dyn BatchSource<B>>,
) -> Captured<'static, Metrics<B>> {
    let (learner, batches) = (learner.clone(), batches.clone());
    backend.capture(move || learner.step(&batches.batch()?))
}
