//! Evaluations that go on beside training.

use std::thread::JoinHandle;

use cm_envs::Rollout;
use cm_nn::Snapshot;

use crate::{Device, Error, Evaluation, Model, Result, RoadMap, RunSettings, Task};

/// A policy that acts on a thread of its own, with the weights it had at some step.
pub(super) struct Pending {
    step: u64,
    thread: JoinHandle<Result<Found>>,
}

/// What an evaluation found.
pub(super) struct Found {
    /// Sent straight to its goals; none if that was known.
    pub(super) straight: Option<Evaluation>,
    /// On a road map, if the settings have one and the method a distance.
    pub(super) planned: Option<(Evaluation, RoadMap)>,
    pub(super) parameters: Snapshot,
}

impl Pending {
    /// Begins to act with the weights of `step`: on the CPU, whatever they are trained on. A road map
    /// is made on the `device`.
    pub(super) fn start(
        (settings, device): (&RunSettings, Device),
        task: &Task,
        step: u64,
        parameters: Snapshot,
    ) -> Result<Self> {
        let (settings, task) = (settings.clone(), task.clone());
        let act = move || evaluate((&settings, device), &task, parameters, true);
        let thread = std::thread::Builder::new().name("evaluation".into()).spawn(act);
        Ok(Self { step, thread: thread.map_err(Error::Thread)? })
    }

    /// The step whose weights act.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// Whether the last episode has ended.
    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the last episode.
    pub(super) fn wait(self) -> Result<Found> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Lets the policy of these weights act, also straight to its goals if `straight`.
pub(super) fn evaluate(
    (settings, device): (&RunSettings, Device),
    task: &Task,
    parameters: Snapshot,
    straight: bool,
) -> Result<Found> {
    let world = task.world()?;
    let plan = &settings.evaluation;
    let plan = Rollout { episodes: plan.episodes, seed: plan.seed, paths: 0 };
    let model = Model::of_parameters(settings, &task.dimensions, &task.scaling, &parameters)?;
    let straight = match straight {
        true => Some(model.evaluate(world, &plan)?),
        false => None,
    };
    let planned = match settings.plan.filter(|_| model.can_plan()) {
        Some(settings) => {
            let map = device.road_map(&model, task, &settings)?;
            Some((model.evaluate_on(&map, world, &plan)?, map))
        }
        None => None,
    };
    Ok(Found { straight, planned, parameters })
}
