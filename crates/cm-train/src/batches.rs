//! Batches drawn on the host.
//!
//! A batch is a pure function of the data, the seed and the step, so that a run can begin anywhere
//! and another device can draw the same one. In this order:
//!
//! 1. [`cm_replay::Sampler`] draws rows and goals from its own streams at that step, of the
//!    trajectories that are not held out.
//! 2. `stay_at_goal`: where the goal is the row itself, the next state becomes the state, before
//!    any noise.
//! 3. `observation_noise`: with `n` rows of `s` coordinates, `2 n s` normal numbers of the stream
//!    [`NOISE`] at that step, numbered as [`Backend::draw`] numbers a matrix `[2 n, s]`. The first `n`
//!    rows of it, times the deviation, are added to the states, the last `n` to the goals. Next
//!    states, and goals that policies have of their own, are left alone.
//!
//! `tests/fixtures/batch.toml` holds a batch that every source must give.

use std::cell::RefCell;

use cm_learner::{Batch, BatchSource, BatchValues, GoalKinds, Transitions};
use cm_nn::Backend;
use cm_random::Philox;
use cm_replay::{Batch as Buffers, Prefetcher};

use crate::{HeldOut, Result, RunSettings, Task};

/// The stream of the noise that is added to states and goals; cm-replay's streams are below it.
pub const NOISE: u32 = 0x020;

/// The batches of one or several runs, one after another, each drawn on a background thread while
/// the step before is learned from.
pub(crate) struct HostBatches<B: Backend> {
    batch: Batch<B>,
    replicas: RefCell<Vec<Rows>>,
}

/// The batches of one replica.
struct Rows {
    prefetcher: Prefetcher,
    buffers: Buffers,
    steps_to_goal: Vec<f32>,
}

impl<B: Backend> HostBatches<B> {
    /// Begins with the batches of `step`, one replica for each of the runs.
    pub(crate) fn new(backend: &B, runs: Vec<(&RunSettings, &Task)>, step: u64) -> Result<Self> {
        let (settings, task) = runs[0];
        let goals = goal_kinds(settings);
        let batch = Batch::with_goals(backend, settings.batch, &task.dimensions, goals)?;
        let replicas = runs.into_iter().map(|(settings, task)| Rows::new(settings, task, step));
        Ok(Self { batch, replicas: RefCell::new(replicas.collect::<Result<_>>()?) })
    }
}

impl<B: Backend> BatchSource<B> for HostBatches<B> {
    fn prepare(&self) -> cm_nn::Result<()> {
        for (replica, rows) in self.replicas.borrow_mut().iter_mut().enumerate() {
            rows.next(|values| self.batch.write(replica, values))?;
        }
        Ok(())
    }

    fn batch(&self) -> cm_nn::Result<Transitions<B>> {
        self.batch.load()
    }
}

impl Rows {
    fn new(settings: &RunSettings, task: &Task, step: u64) -> Result<Self> {
        let sampler = HeldOut::sampler(settings, task)?;
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
        Ok(Self { prefetcher, buffers: Buffers::default(), steps_to_goal: Vec::new() })
    }

    fn next<T>(&mut self, take: impl FnOnce(&BatchValues<'_>) -> T) -> T {
        let Self { prefetcher, buffers, steps_to_goal } = self;
        prefetcher.next(buffers);
        steps_to_goal.clear();
        // A random goal of another trajectory may lie behind.
        let ahead = buffers.goal_steps.iter().zip(&buffers.steps);
        steps_to_goal.extend(ahead.map(|(goal, step)| goal.abs_diff(*step) as f32));
        let further = [&buffers.actor, &buffers.low, &buffers.high];
        let further = further.map(|goals| &goals.observations[..]);
        let drawn = further.iter().take_while(|goals| !goals.is_empty()).count();
        take(&BatchValues {
            state: &buffers.observations,
            action: &buffers.actions,
            next_state: &buffers.next_observations,
            goal: &buffers.goals,
            goal_action: &buffers.goal_actions,
            steps_to_goal,
            actor_goals: &further[..drawn],
        })
    }
}

/// The goals that a run's rows have beside their own.
pub(crate) fn goal_kinds(settings: &RunSettings) -> GoalKinds {
    match (&settings.goals.actor, settings.goals.subgoal_steps) {
        (None, _) => GoalKinds::Shared,
        (Some(_), 0) => GoalKinds::Actor,
        (Some(_), _) => GoalKinds::Hierarchy,
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
pub(crate) mod tests {
    use std::sync::Arc;

    use cm_learner::{ActorGoals, Dimensions};
    use cm_nn::DfdxBackend;
    use cm_random::normal_pair;
    use cm_replay::{Dataset, Goals, Matrix, MixedGoals};

    use super::*;
    use crate::{Method, Scaling};

    #[test]
    fn transitions_stay_where_their_goal_is_and_noise_is_added_to_states_and_goals_alone() {
        let settings = RunSettings { batch: 256, ..RunSettings::tiny_plane(Method::Qrl, 0) };
        let task = settings.task.open().unwrap();
        let backend = DfdxBackend::new(0);
        let batch = |stay_at_goal, observation_noise| {
            let settings = RunSettings { stay_at_goal, observation_noise, ..settings.clone() };
            let batches = HostBatches::new(&backend, vec![(&settings, &task)], 7).unwrap();
            batches.prepare().unwrap();
            let batch = batches.batch().unwrap();
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

    /// What `tests/fixtures/batch.toml` was recorded with: trajectories of 3, 1, 6 and 2 steps.
    pub(crate) fn recorded() -> (RunSettings, Task) {
        let steps = [3_usize, 1, 6, 2];
        let ends = steps.iter().scan(0, |end, steps| {
            *end += steps;
            Some(*end)
        });
        let number = |row: usize, column: usize| row as f32 + 0.25 * column as f32;
        let matrix = |columns: usize| {
            let values =
                (0..12).flat_map(|row| (0..columns).map(move |column| number(row, column)));
            Matrix::from_vec(12, columns, values.collect()).unwrap()
        };
        let data = Dataset::new(matrix(3), matrix(2), ends.collect()).unwrap();
        let settings = RunSettings { seed: 11, batch: 7, ..RunSettings::plane(Method::Cmd1) };
        let dimensions = Dimensions::new(3, 2, 0..3).unwrap();
        let (data, scaling) = (Arc::new(data), Scaling::none(3, 2));
        (settings, Task { data, dimensions, scaling, world: None })
    }

    /// The batch of step 5 by any source: state, action, next state, goal, goal action, steps.
    pub(crate) fn fields<B: Backend>(source: &dyn BatchSource<B>) -> [Vec<f32>; 6] {
        source.prepare().unwrap();
        let rows = source.batch().unwrap();
        let Transitions { state, action, next_state, goal, goal_action, steps_to_goal, .. } = rows;
        [state, action, next_state, goal, goal_action, steps_to_goal]
            .map(|field| field.to_vec().unwrap())
    }

    /// The policy's goals of the next batch by any source: goal, low subgoal, high subgoal.
    pub(crate) fn further_goals<B: Backend>(source: &dyn BatchSource<B>) -> Vec<Vec<f32>> {
        source.prepare().unwrap();
        let goals = source.batch().unwrap().actor_goals;
        let each = goals.into_iter().flat_map(|ActorGoals { goal, subgoals }| {
            [Some(goal)].into_iter().chain(
                subgoals.map_or([None, None], |subgoals| [Some(subgoals.low), Some(subgoals.high)]),
            )
        });
        each.flatten().map(|goal| goal.to_vec().unwrap()).collect()
    }

    /// Settings whose rows have goals of policies, with subgoals or without.
    pub(crate) fn with_further_goals(settings: &RunSettings, subgoal_steps: u64) -> RunSettings {
        let actor = Some(MixedGoals { uniform_future: 0.5, random: 0.25, current: 0.0 });
        RunSettings { goals: Goals { actor, subgoal_steps, ..settings.goals }, ..settings.clone() }
    }

    #[test]
    fn goals_of_policies_are_the_samplers() {
        let (settings, task) = recorded();
        let backend = DfdxBackend::new(settings.seed);
        for (subgoal_steps, count) in [(0, 1), (2, 3)] {
            let settings = with_further_goals(&settings, subgoal_steps);
            let batches = HostBatches::new(&backend, vec![(&settings, &task)], 5).unwrap();
            let found = further_goals(&batches);
            let sampler = HeldOut::sampler(&settings, &task).unwrap();
            let mut wanted = sampler.batch(settings.batch);
            sampler.fill(5, &mut wanted).unwrap();
            let wanted = [wanted.actor, wanted.low, wanted.high].map(|goals| goals.observations);
            assert_eq!(found, wanted[..count]);
        }
        let batches = HostBatches::new(&backend, vec![(&settings, &task)], 5).unwrap();
        assert!(further_goals(&batches).is_empty());
    }

    #[test]
    fn a_batch_is_the_recorded_one() {
        let (settings, task) = recorded();
        let backend = DfdxBackend::new(settings.seed);
        let found = fields(&HostBatches::new(&backend, vec![(&settings, &task)], 5).unwrap());
        let names = ["state", "action", "next_state", "goal", "goal_action", "steps_to_goal"];
        let text = include_str!("../tests/fixtures/batch.toml");
        let wanted: toml::Table = text.parse().unwrap();
        for (name, found) in names.into_iter().zip(found) {
            let wanted = wanted[name].as_array().unwrap().iter();
            let wanted = wanted.map(|x| x.as_float().unwrap() as f32).collect::<Vec<_>>();
            assert_eq!(found, wanted, "{name}");
        }
    }

    #[test]
    fn noise_is_drawn_in_the_stated_order() {
        let (settings, task) = recorded();
        let backend = DfdxBackend::new(settings.seed);
        let batch = |observation_noise| {
            let settings = RunSettings { observation_noise, ..settings.clone() };
            fields(&HostBatches::new(&backend, vec![(&settings, &task)], 5).unwrap())
        };
        let ([state, _, next, goal, ..], [clean_state, _, clean_next, clean_goal, _, ahead]) =
            (batch(0.5), batch(0.0));
        let philox = Philox::new(settings.seed);
        let normals = (0..).flat_map(|index| {
            let [a, b, c, d] = philox.block(5, NOISE, index);
            let ((x, y), (z, w)) = (normal_pair(a, b), normal_pair(c, d));
            [x, y, z, w]
        });
        let clean = clean_state.iter().chain(&clean_goal).zip(normals);
        let wanted = clean.map(|(clean, normal)| clean + 0.5 * normal).collect::<Vec<_>>();
        assert_eq!([state, goal].concat(), wanted);
        assert_eq!(next, clean_next);
        let stays = ahead.iter().position(|&steps| steps == 0.0).unwrap();
        assert_eq!(next[3 * stays..][..3], clean_state[3 * stays..][..3]);
    }
}
