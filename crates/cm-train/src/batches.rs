//! Batches as a learner takes them.

use cm_nn::{Backend, Var};
use cm_policy::Batch;
use cm_random::Philox;
use cm_replay::{Batch as Buffers, Prefetcher, Sampler};

use crate::{Result, RunSettings, Task};

/// The stream of the noise that is added to states and goals; cm-replay's streams are below it.
const NOISE: u32 = 0x020;

/// The batches of a run, one after another: each a pure function of the data, the seed and the step, drawn on a thread of its own while
/// the step before is learned from.
pub(crate) struct Batches {
    prefetcher: Prefetcher,
    buffers: Buffers,
}

impl Batches {
    /// Begins with the batch of `step`.
    pub(crate) fn new(settings: &RunSettings, task: &Task, step: u64) -> Result<Self> {
        let sampler = Sampler::new(task.data.clone(), settings.goals.goals(), settings.seed)?;
        let philox = Philox::new(settings.seed);
        let RunSettings { batch, observation_noise, stay_at_goal, .. } = *settings;
        let prefetcher = Prefetcher::with_finish(&sampler, batch, step, 1, move |step, batch| {
            if stay_at_goal {
                stay(batch);
            }
            if observation_noise > 0.0 {
                add_noise(philox, step, observation_noise, batch);
            }
        })?;
        Ok(Self { prefetcher, buffers: Buffers::default() })
    }

    /// The next batch.
    pub(crate) fn next<B: Backend>(&mut self, backend: &B) -> Result<Batch<B>> {
        self.prefetcher.next(&mut self.buffers);
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
            steps_to_goal: Var::new(backend, [rows, 1], ahead)?,
        })
    }
}

/// Where the goal is the state itself, the next state is as well.
fn stay(batch: &mut Buffers) {
    let Buffers { steps, goal_steps, observations, next_observations, .. } = batch;
    let width = observations.len() / steps.len();
    let rows = observations.chunks_exact(width).zip(next_observations.chunks_exact_mut(width));
    for ((step, goal), (state, next)) in steps.iter().zip(goal_steps.iter()).zip(rows) {
        // One in five rows, at random: a choice of numbers is faster than a branch.
        for (next, &state) in next.iter_mut().zip(state) {
            *next = if step == goal { state } else { *next };
        }
    }
}

/// The stream gives the numbers of the states first, then of the goals.
fn add_noise(philox: Philox, step: u64, deviation: f32, batch: &mut Buffers) {
    let Buffers { observations, goals, .. } = batch;
    let mut normals = vec![0.0; observations.len() + goals.len()];
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || philox.normals(step, NOISE, 0, &mut normals),
    );
    for (number, normal) in observations.iter_mut().chain(goals).zip(normals) {
        *number += deviation * normal;
    }
}

#[cfg(test)]
mod tests {
    use cm_nn::DfdxBackend;

    use super::*;
    use crate::{Method, TaskSettings};

    #[test]
    fn transitions_stay_where_their_goal_is_and_noise_is_added_to_states_and_goals_alone() {
        let mut settings = RunSettings::plane(Method::Qrl);
        if let TaskSettings::PointMaze { world, data } = &mut settings.task {
            (world.states, data.trajectories) = (400, 50);
        }
        let task = settings.task.open().unwrap();
        let backend = DfdxBackend::new(0);
        let batch = |stay_at_goal, observation_noise| {
            let settings = RunSettings { stay_at_goal, observation_noise, ..settings.clone() };
            let batch = Batches::new(&settings, &task, 7).unwrap().next(&backend).unwrap();
            [&batch.state, &batch.next_state, &batch.goal, &batch.steps_to_goal]
                .map(|var| var.to_vec().unwrap())
        };
        let [state, next, goal, ahead] = batch(true, 0.0);
        let [_, moved, ..] = batch(false, 0.0);
        let at_goal = ahead.iter().filter(|&&steps| steps == 0.0).count();
        assert!((20..90).contains(&at_goal), "one in five of 256: {at_goal}");
        for (row, steps) in ahead.iter().enumerate() {
            let range = 2 * row..2 * row + 2;
            let wanted = if *steps == 0.0 { &state } else { &moved };
            assert_eq!(next[range.clone()], wanted[range]);
        }
        let [noisy_state, noisy_next, noisy_goal, _] = batch(true, 0.2);
        assert_eq!(noisy_next, next);
        for (noisy, clean) in [(noisy_state, state), (noisy_goal, goal)] {
            let squares = noisy.iter().zip(&clean).map(|(a, b)| (a - b) * (a - b));
            let deviation = (squares.sum::<f32>() / clean.len() as f32).sqrt();
            assert!((deviation - 0.2).abs() < 0.03, "{deviation}");
        }
    }
}
