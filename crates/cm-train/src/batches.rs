//! Batches as a learner takes them.

use cm_nn::{Backend, Var};
use cm_policy::Batch;
use cm_random::{Philox, normal_pair};
use cm_replay::{Batch as Buffers, Sampler};

use crate::{Result, RunSettings, Task};

/// The stream of the noise that is added to states and goals; cm-replay's streams are below it.
const NOISE: u32 = 0x020;

/// The batches of a run: a pure function of the data, the seed and the step.
pub(crate) struct Batches {
    sampler: Sampler,
    buffers: Buffers,
    philox: Philox,
    noise: f32,
}

impl Batches {
    pub(crate) fn new(settings: &RunSettings, task: &Task) -> Result<Self> {
        let sampler = Sampler::new(task.data.clone(), settings.goals.goals(), settings.seed)?;
        Ok(Self {
            buffers: Buffers::new(&task.data, settings.batch),
            philox: Philox::new(settings.seed),
            noise: settings.observation_noise,
            sampler,
        })
    }

    /// The batch of `step`.
    pub(crate) fn get<B: Backend>(&mut self, backend: &B, step: u64) -> Result<Batch<B>> {
        self.sampler.fill(step, &mut self.buffers)?;
        if self.noise > 0.0 {
            self.add_noise(step);
        }
        let buffers = &self.buffers;
        let rows = buffers.steps.len();
        let var = |values: &[f32]| Var::new(backend, [rows, values.len() / rows], values.to_vec());
        let ahead = buffers.goal_steps.iter().zip(&buffers.steps);
        // A random goal of another trajectory may lie behind.
        let ahead: Vec<f32> = ahead.map(|(goal, step)| goal.abs_diff(*step) as f32).collect();
        Ok(Batch {
            state: var(&buffers.observations)?,
            action: var(&buffers.actions)?,
            next_state: var(&buffers.next_observations)?,
            goal: var(&buffers.goals)?,
            goal_action: var(&buffers.goal_actions)?,
            steps_to_goal: var(&ahead)?,
        })
    }

    /// Block `b` of the stream gives four numbers: of the states first, then of the goals.
    fn add_noise(&mut self, step: u64) {
        let Buffers { observations, goals, .. } = &mut self.buffers;
        let numbers = observations.iter_mut().chain(goals);
        let mut noise = [0.0; 4];
        for (at, number) in numbers.enumerate() {
            if at % 4 == 0 {
                let words = self.philox.block(step, NOISE, (at / 4) as u32);
                (noise[0], noise[1]) = normal_pair(words[0], words[1]);
                (noise[2], noise[3]) = normal_pair(words[2], words[3]);
            }
            *number += self.noise * noise[at % 4];
        }
    }
}
