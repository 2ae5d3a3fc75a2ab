//! Many episodes side by side, with one batched call of the policy for each step of them all.

use std::ops::Range;

use cm_random::Philox;
use rayon::prelude::*;

use crate::{Env, Error};

/// The stream of random numbers that episodes draw from, among those of environments.
const EPISODES: u32 = 0x201;

/// Which episodes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// How many.
    pub episodes: usize,
    /// Episode `k` is the same for the same seed and actions, however many run beside it.
    pub seed: u64,
    /// How many of them, from the first, keep the places they pass.
    pub paths: usize,
}

/// How one episode went.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Which of the environment's tasks it had, from 0.
    pub task: usize,
    /// Whether the goal was reached.
    pub success: bool,
    /// Steps taken: up to the first success, or to the horizon.
    pub steps: usize,
    /// The goal.
    pub goal: Vec<f32>,
    /// Every place passed, the first and the last included, for the episodes whose paths are kept.
    pub path: Vec<[f32; 2]>,
}

/// The share of the episodes that reached their goals; 0 of none.
pub fn success_rate(outcomes: &[Outcome]) -> f64 {
    let reached = outcomes.iter().filter(|outcome| outcome.success).count();
    reached as f64 / outcomes.len().max(1) as f64
}

/// The share of the episodes of each of `tasks` tasks that reached their goals.
pub fn task_success_rates(outcomes: &[Outcome], tasks: usize) -> Vec<f64> {
    let rate = |task: usize| {
        let of_task = || outcomes.iter().filter(|outcome| outcome.task == task);
        let reached = of_task().filter(|outcome| outcome.success).count();
        reached as f64 / of_task().count().max(1) as f64
    };
    (0..tasks).map(rate).collect()
}

/// Runs episodes until each has reached its goal or its horizon.
///
/// `act` is given the observations `[n, observation]` and the goals `[n, goal]` of the `n` episodes
/// still under way and fills in their actions `[n, action]`, row by row. An episode that begins at
/// its goal succeeds after no steps.
pub fn rollout<E: Env, F: From<Error>>(
    env: &E,
    plan: &Rollout,
    mut act: impl FnMut(&[f32], &[f32], &mut [f32]) -> Result<(), F>,
) -> Result<Vec<Outcome>, F> {
    let act = |_: &[usize], observations: &[f32], goals: &[f32], actions: &mut [f32]| {
        act(observations, goals, actions)
    };
    run(env, plan, 0..plan.episodes, SMALLEST_SHARE, act)
}

/// The episodes `numbers` of a [`rollout`], on this thread alone, with a policy that may have a
/// memory: `act` is first given the numbers of the episodes still under way, ascending. Several
/// threads that each have a policy of their own share a rollout so.
///
/// ```
/// use cm_envs::point_maze::{PointMaze, PointMazeSettings};
/// use cm_envs::{Error, Rollout, rollout, rollout_share};
///
/// let settings = PointMazeSettings { states: 500, horizon: 20, ..Default::default() };
/// let (maze, plan) = (PointMaze::new(settings)?, Rollout { episodes: 5, seed: 1, paths: 5 });
/// let still = |actions: &mut [f32]| Ok::<_, Error>(actions.fill(0.0));
/// let all = rollout(&maze, &plan, |_, _, actions| still(actions))?;
/// let last = rollout_share(&maze, &plan, 3..5, |_, _, _, actions| still(actions))?;
/// assert_eq!(last, all[3..]);
/// # Ok::<(), Error>(())
/// ```
pub fn rollout_share<E: Env, F: From<Error>>(
    env: &E,
    plan: &Rollout,
    numbers: Range<usize>,
    act: impl FnMut(&[usize], &[f32], &[f32], &mut [f32]) -> Result<(), F>,
) -> Result<Vec<Outcome>, F> {
    run(env, plan, numbers, usize::MAX, act)
}

/// Runs the episodes `numbers`, at least `share` of them on one thread.
fn run<E: Env, F: From<Error>>(
    env: &E,
    plan: &Rollout,
    numbers: Range<usize>,
    share: usize,
    mut act: impl FnMut(&[usize], &[f32], &[f32], &mut [f32]) -> Result<(), F>,
) -> Result<Vec<Outcome>, F> {
    let (seen, wide, aim) = (env.observation_width(), env.action_width(), env.goal_columns().len());
    let philox = Philox::new(plan.seed);
    let begin = |number: usize| Running::begin(env, plan, number, philox);
    let first = numbers.start;
    let mut outcomes: Vec<Option<Outcome>> = vec![None; numbers.len()];
    let mut running: Vec<_> =
        numbers.into_par_iter().with_min_len(share).map(begin).collect::<Result<_, Error>>()?;
    let (mut observations, mut goals, mut actions) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        for episode in running.extract_if(.., |episode| episode.over) {
            outcomes[episode.number - first] = Some(episode.outcome);
        }
        if running.is_empty() {
            return Ok(outcomes.into_iter().flatten().collect());
        }
        observations.resize(running.len() * seen, 0.0);
        goals.resize(running.len() * aim, 0.0);
        actions.resize(running.len() * wide, 0.0);
        (
            running.par_iter_mut(),
            observations.par_chunks_exact_mut(seen),
            goals.par_chunks_exact_mut(aim),
        )
            .into_par_iter()
            .with_min_len(share)
            .for_each(|(running, observation, goal)| {
                env.observe(&mut running.episode, observation);
                goal.copy_from_slice(&running.outcome.goal);
            });
        let numbers: Vec<usize> = running.iter().map(|episode| episode.number).collect();
        act(&numbers, &observations, &goals, &mut actions)?;
        running
            .par_iter_mut()
            .with_min_len(share)
            .zip(actions.par_chunks_exact(wide))
            .try_for_each(|(running, action)| running.step(env, plan, action))?;
    }
}

/// Episodes that one thread takes at a time, so that cheap worlds do not spend their time handing
/// out work.
const SMALLEST_SHARE: usize = 4;

struct Running<T> {
    number: usize,
    episode: T,
    over: bool,
    outcome: Outcome,
}

impl<T> Running<T> {
    fn begin<E: Env<Episode = T>>(
        env: &E,
        plan: &Rollout,
        number: usize,
        philox: Philox,
    ) -> Result<Self, Error> {
        let task = number % env.tasks().max(1);
        let episode = env.begin_task(task, philox.stream(number as u64, EPISODES))?;
        let mut goal = vec![0.0; env.goal_columns().len()];
        env.goal(&episode, &mut goal);
        let success = env.succeeded(&episode);
        let path = if number < plan.paths { vec![env.position(&episode)] } else { Vec::new() };
        let over = success || env.horizon() == 0;
        Ok(Self { number, episode, over, outcome: Outcome { task, success, steps: 0, goal, path } })
    }

    fn step<E: Env<Episode = T>>(
        &mut self,
        env: &E,
        plan: &Rollout,
        action: &[f32],
    ) -> Result<(), Error> {
        env.step(&mut self.episode, action)?;
        let outcome = &mut self.outcome;
        outcome.steps += 1;
        outcome.success = env.succeeded(&self.episode);
        if self.number < plan.paths {
            outcome.path.push(env.position(&self.episode));
        }
        self.over = outcome.success || outcome.steps >= env.horizon();
        Ok(())
    }
}
