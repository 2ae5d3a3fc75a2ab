//! Evaluations that go on beside training.

use std::thread::JoinHandle;

use cm_envs::Rollout;
use cm_nn::{DfdxBackend, Snapshot};

use crate::{Error, Evaluation, Result, RunSettings, Task, evaluate};

/// A policy that acts on a thread of its own, with the weights it had at some step.
pub(super) struct Pending {
    step: u64,
    thread: JoinHandle<Result<(Evaluation, Snapshot)>>,
}

impl Pending {
    /// Begins to act with the weights of `step`: on the CPU, whatever they are trained on.
    pub(super) fn start(
        settings: &RunSettings,
        task: &Task,
        step: u64,
        parameters: Snapshot,
    ) -> Result<Self> {
        let world = task.world.clone().ok_or(Error::NoEnvironment)?;
        let (dimensions, scaling) = (task.dimensions.clone(), task.scaling.clone());
        let (method, seed, plan) = (settings.method.clone(), settings.seed, &settings.evaluation);
        let plan = Rollout { episodes: plan.episodes, seed: plan.seed, paths: 0 };
        let act = move || {
            let backend = DfdxBackend::new(seed);
            let learner = method.learner(&backend, &dimensions)?;
            learner.restore(0, &parameters)?;
            let found = evaluate(&*world, learner.as_ref(), &backend, &scaling, &plan)?;
            Ok((found, parameters))
        };
        let thread = std::thread::Builder::new().name("evaluation".into()).spawn(act);
        Ok(Self { step, thread: thread.map_err(Error::Thread)? })
    }

    /// The step whose weights act.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// Waits for the last episode.
    pub(super) fn wait(self) -> Result<(Evaluation, Snapshot)> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
