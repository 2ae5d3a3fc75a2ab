//! Training on a GPU, and road maps made there.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use cm_cuda::{CudaBackend, DeviceData, GatherSettings, Gathered};
use cm_learner::{ActorGoals, BatchSource, Transitions};
use cm_nn::Var;
use cm_replay::{Dataset, Sampler};

use crate::batches::{HostBatches, NOISE, goal_kinds};
use crate::plan::Measure;
use crate::training::Setup;
use crate::{HeldOut, Model, PlanSettings, Precision, Result, RoadMap, RunSettings, Task};

/// A GPU that was opened.
pub(crate) struct Cuda {
    device: cm_cuda::Device,
    precision: cm_cuda::Precision,
}

impl Cuda {
    pub(crate) fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        let device = cm_cuda::Device::open(ordinal).map_err(cm_nn::Error::from)?;
        let precision = match precision {
            Precision::Highest => cm_cuda::Precision::Highest,
            Precision::Tf32 => cm_cuda::Precision::Tf32,
            Precision::Bf16 => cm_cuda::Precision::Bf16,
        };
        Ok(Self { device, precision })
    }

    /// A road map by the distances of this GPU; by those of the CPU if memory is short.
    pub(crate) fn road_map(
        &self,
        model: &Model,
        task: &Task,
        settings: &PlanSettings,
    ) -> Result<RoadMap> {
        let make = || {
            let backend = self.backend(&[model.settings().seed])?;
            let learner = model.settings().method.learner(&backend, model.dimensions())?;
            learner.restore(0, &model.learner().1.snapshot(0)?)?;
            RoadMap::by(&Measure::of(model, &backend, learner.as_ref())?, task, settings)
        };
        match make() {
            Err(error) if does_not_fit(&error) => {
                eprintln!("the road map is made on the CPU, which takes longer: {error}");
                RoadMap::of_data(model, task, settings)
            }
            made => made,
        }
    }
}

impl Setup for Cuda {
    type Backend = CudaBackend;

    fn backend(&self, seeds: &[u64]) -> cm_nn::Result<CudaBackend> {
        CudaBackend::new(&self.device, seeds, self.precision)
    }

    /// From the device's memory, if the data fits.
    fn batches(
        &self,
        backend: &CudaBackend,
        runs: Vec<(&RunSettings, &Task)>,
        step: u64,
    ) -> Result<Rc<dyn BatchSource<CudaBackend>>> {
        match DeviceBatches::new(backend, &runs, step) {
            Ok(batches) => Ok(Rc::new(batches)),
            Err(error) if does_not_fit(&error) => {
                eprintln!("the data stays in the host's memory, which takes longer: {error}");
                Ok(Rc::new(HostBatches::new(backend, runs, step)?))
            }
            Err(error) => Err(error),
        }
    }
}

fn does_not_fit(error: &crate::Error) -> bool {
    let crate::Error::Network(cm_nn::Error::Backend(cause)) = error else { return false };
    let cause = cause.downcast_ref::<cm_cuda::Error>();
    matches!(cause, Some(cm_cuda::Error::OutOfMemory { .. } | cm_cuda::Error::TooLarge(_)))
}

/// Batches that the device gathers from data in its own memory: the host draws which rows, with the
/// sampler that [`HostBatches`] has, for some steps ahead.
pub(crate) struct DeviceBatches {
    backend: CudaBackend,
    data: DeviceData,
    samplers: Vec<Sampler>,
    rows: usize,
    /// The step that is prepared next.
    step: Cell<u64>,
    /// The steps below this one have their rows on the device.
    drawn: Cell<u64>,
}

impl DeviceBatches {
    /// Begins with the batches of `step`, one replica for each of the runs.
    pub(crate) fn new(
        backend: &CudaBackend,
        runs: &[(&RunSettings, &Task)],
        step: u64,
    ) -> Result<Self> {
        let (settings, task) = runs[0];
        let gather = GatherSettings {
            batch: settings.batch,
            state: task.dimensions.state(),
            action: task.dimensions.action(),
            stay_at_goal: settings.stay_at_goal,
            noise: settings.observation_noise,
            noise_stream: NOISE,
            further_goals: goal_kinds(settings).count(),
        };
        let samplers = runs.iter().map(|(settings, task)| HeldOut::sampler(settings, task));
        let samplers = samplers.collect::<Result<Vec<_>>>()?;
        // One copy serves all if the runs share their data.
        let mut sets: Vec<&Arc<Dataset>> = runs.iter().map(|(_, task)| &task.data).collect();
        if sets.iter().all(|data| Arc::ptr_eq(data, sets[0])) {
            sets.truncate(1);
        }
        let numbers = sets.iter().map(|data| {
            let rows = 0..data.steps();
            (data.observations().numbers(rows.clone()), data.actions().numbers(rows))
        });
        let numbers = numbers.collect::<Vec<_>>();
        let slices = numbers.iter().map(|(states, actions)| (&**states, &**actions));
        let data = DeviceData::new(backend, &gather, &slices.collect::<Vec<_>>())?;
        let (backend, rows) = (backend.clone(), settings.batch);
        let drawn = Cell::new(0);
        Ok(Self { backend, data, samplers, rows, step: Cell::new(step), drawn })
    }

    /// Draws the rows of as many steps as the device has room for.
    fn draw(&self, first: u64) -> cm_nn::Result<()> {
        for (replica, sampler) in self.samplers.iter().enumerate() {
            let mut drawn = vec![vec![0; self.rows]; sampler.columns()];
            let mut numbers = Vec::with_capacity(drawn.len() * self.rows * DeviceData::SLOTS);
            for step in first..first + DeviceData::SLOTS as u64 {
                let mut columns = drawn.iter_mut().map(|column| &mut column[..]);
                sampler.draw_rows(step, &mut columns.by_ref().collect::<Vec<_>>());
                numbers.extend(drawn.iter().flatten().map(|&row| row as u32));
            }
            self.data.write(replica, &numbers)?;
        }
        Ok(())
    }
}

impl BatchSource<CudaBackend> for DeviceBatches {
    fn prepare(&self) -> cm_nn::Result<()> {
        let (step, slots) = (self.step.get(), DeviceData::SLOTS as u64);
        self.step.set(step + 1);
        if step < self.drawn.get() {
            return Ok(());
        }
        let first = step / slots * slots;
        self.drawn.set(first + slots);
        self.draw(first)
    }

    fn batch(&self) -> cm_nn::Result<Transitions<CudaBackend>> {
        let Gathered { state, action, next_state, goal, goal_action, steps_to_goal, further_goals } =
            self.data.gather()?;
        let var = |tensor| Var::wrap(&self.backend, tensor);
        Ok(Transitions {
            state: var(state),
            action: var(action),
            next_state: var(next_state),
            goal: var(goal),
            goal_action: var(goal_action),
            steps_to_goal: var(steps_to_goal),
            actor_goals: ActorGoals::from_states(further_goals.into_iter().map(var).collect())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::tests::{fields, further_goals, recorded, with_further_goals};

    #[test]
    fn the_device_gathers_the_batches_of_the_host() {
        let Some(device) = cm_cuda::testing::device() else { return };
        let (settings, task) = recorded();
        for (stay_at_goal, observation_noise) in [(false, 0.0), (true, 0.0), (true, 0.5)] {
            let settings = RunSettings { stay_at_goal, observation_noise, ..settings.clone() };
            let backend =
                CudaBackend::new(&device, &[settings.seed], cm_cuda::Precision::Highest).unwrap();
            let runs = [(&settings, &task)];
            let gathered = DeviceBatches::new(&backend, &runs, 5).unwrap();
            let host = HostBatches::new(&backend, runs.to_vec(), 5).unwrap();
            // Beyond the steps whose rows are drawn at once, twice.
            for step in 5..20 {
                cm_nn::Backend::set_step(&backend, step).unwrap();
                assert_eq!(fields(&gathered), fields(&host), "step {step}");
            }
            for subgoal_steps in [0, 2] {
                let settings = with_further_goals(&settings, subgoal_steps);
                let runs = [(&settings, &task)];
                let gathered = DeviceBatches::new(&backend, &runs, 5).unwrap();
                let host = HostBatches::new(&backend, runs.to_vec(), 5).unwrap();
                for step in 5..15 {
                    cm_nn::Backend::set_step(&backend, step).unwrap();
                    assert_eq!(further_goals(&gathered), further_goals(&host), "step {step}");
                }
            }
        }
    }
}
