//! The world: states, where each leads, and episodes in it.

use std::ops::Range;

use cm_random::{Philox, Stream, below_u64};
use rand_core::Rng;
use rayon::prelude::*;

use super::paths::{self, Path, add, length, normal, scale, sub, unit};
use super::{Nearest, PointMazeSettings, streams};
use crate::{Env, Error};

/// The 2-D world of the paper's Figures 2 and 3.
///
/// A step with action `a` picks, of the places that the state leads to, the one nearest to
/// `state + a` (`a` normalised); noise is added to it, the move is given the length `step_speed`,
/// and the next state is the neighbour of the state nearest to where that ends. What is observed is
/// the state with noise; only the first observation of an episode is exact.
///
/// ```
/// use cm_envs::point_maze::{PointMaze, PointMazeSettings};
/// use cm_envs::{Rollout, rollout, success_rate};
///
/// let settings = PointMazeSettings { states: 2_000, horizon: 200, ..Default::default() };
/// let maze = PointMaze::new(settings)?;
/// // A policy that always walks straight at its goal, whatever lies between.
/// let outcomes = rollout(&maze, &Rollout { episodes: 50, seed: 1, paths: 0 }, |states, goals, actions| {
///     for (action, (goal, state)) in actions.iter_mut().zip(goals.iter().zip(states)) {
///         *action = goal - state;
///     }
///     Ok::<(), cm_envs::Error>(())
/// })?;
/// assert!(success_rate(&outcomes) < 0.9);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PointMaze {
    settings: PointMazeSettings,
    paths: Vec<Path>,
    states: Vec<[f32; 2]>,
    /// Where each state leads.
    successors: Lists,
    /// The states around each state, itself among them.
    neighbours: Lists,
}

/// One episode in a [`PointMaze`].
#[derive(Clone, Debug)]
pub struct PointEpisode {
    random: Stream,
    state: u32,
    goal: u32,
    /// Whether anything has happened yet.
    moved: bool,
}

impl PointMaze {
    /// Makes the world of these settings.
    pub fn new(settings: PointMazeSettings) -> Result<Self, Error> {
        settings.check()?;
        let paths = paths::all(settings.seed);
        let points: Vec<_> = paths.iter().flat_map(|path| path.points.iter().copied()).collect();
        if settings.states > points.len() {
            let (limit, found) = (points.len(), settings.states);
            return Err(Error::TooMany { what: "states", limit, found });
        }
        let states = draw_states(&points, &settings);
        let lasts: Vec<usize> = {
            let ends = paths.iter().scan(0, |end, path| {
                *end += path.points.len();
                Some((*end - 1, path.points.len()))
            });
            ends.flat_map(|(last, length)| std::iter::repeat_n(last, length)).collect()
        };
        let (near_points, near_states) = (Nearest::new(&points), Nearest::new(&states));
        // The state that each path point is snapped to.
        let snapped: Vec<u32> = points
            .par_iter()
            .map(|&point| near_states.nearest(point).unwrap_or(0) as u32)
            .collect();
        let lists: Vec<_> = states
            .par_iter()
            .map(|&state| {
                let near = near_points.among(state, settings.nearest);
                let reached = |point: usize| length(sub(points[point], state)) < settings.reach;
                let ahead = |point: usize| (point + settings.ahead).min(lasts[point]);
                let successors = near
                    .iter()
                    .map(|&point| if reached(point) { point } else { near[0] })
                    .map(|point| snapped[ahead(point)]);
                let neighbours = near.iter().map(|&point| snapped[point]);
                (distinct(successors), distinct(neighbours))
            })
            .collect();
        let (successors, neighbours) = lists.into_iter().unzip();
        Ok(Self {
            settings,
            paths,
            successors: Lists::new(successors, &states),
            neighbours: Lists::new(neighbours, &states),
            states,
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &PointMazeSettings {
        &self.settings
    }

    /// The curves that the world is made of.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// How many kinds of path there are.
    pub fn kinds(&self) -> usize {
        paths::kinds()
    }

    /// Where the states are.
    pub fn states(&self) -> &[[f32; 2]] {
        &self.states
    }

    /// The states that `state` leads to. Panics if there is no such state, as indexing does.
    pub fn successors(&self, state: usize) -> &[u32] {
        self.successors.of(state)
    }

    /// The states around `state`, among which a step from it ends. Panics if there is no such
    /// state, as indexing does.
    pub fn neighbours(&self, state: usize) -> &[u32] {
        self.neighbours.of(state)
    }

    /// Where a step from `state` ends.
    fn next_state(&self, state: u32, action: [f32; 2], noise: [f32; 2]) -> u32 {
        let here = self.states[state as usize];
        let (_, aim) = self.successors.nearest(state as usize, add(here, unit(action)));
        let aim = add(aim, scale(noise, self.settings.step_noise));
        let end = add(here, scale(unit(sub(aim, here)), self.settings.step_speed));
        self.neighbours.nearest(state as usize, end).0
    }
}

impl Env for PointMaze {
    type Episode = PointEpisode;

    fn name(&self) -> &str {
        "pointmaze"
    }

    fn observation_width(&self) -> usize {
        2
    }

    fn action_width(&self) -> usize {
        2
    }

    fn goal_columns(&self) -> Range<usize> {
        0..2
    }

    fn horizon(&self) -> usize {
        self.settings.horizon
    }

    fn begin(&self, mut random: Stream) -> Result<PointEpisode, Error> {
        let count = self.states.len() as u64;
        let mut draw = || below_u64(random.next_u64(), count) as u32;
        let state = draw();
        let mut goal = draw();
        let far = |goal: u32| length(sub(self.states[goal as usize], self.states[state as usize]));
        for _ in 1..self.settings.goal_candidates {
            let other = draw();
            if far(other) > far(goal) {
                goal = other;
            }
        }
        Ok(PointEpisode { random, state, goal, moved: false })
    }

    fn observe(&self, episode: &mut PointEpisode, observation: &mut [f32]) {
        let place = self.states[episode.state as usize];
        let seen = if episode.moved {
            add(place, scale(normal(&mut episode.random), self.settings.obs_noise))
        } else {
            place
        };
        observation.copy_from_slice(&seen);
    }

    fn goal(&self, episode: &PointEpisode, goal: &mut [f32]) {
        goal.copy_from_slice(&self.states[episode.goal as usize]);
    }

    fn step(&self, episode: &mut PointEpisode, action: &[f32]) -> Result<(), Error> {
        let &[x, y] = action else {
            let what = "action".to_owned();
            return Err(Error::Length { what, expected: 2, found: action.len() });
        };
        if !(x.is_finite() && y.is_finite()) {
            return Err(Error::Action { found: action.to_vec() });
        }
        let noise = normal(&mut episode.random);
        episode.state = self.next_state(episode.state, [x, y], noise);
        episode.moved = true;
        Ok(())
    }

    fn succeeded(&self, episode: &PointEpisode) -> bool {
        let (place, goal) =
            (self.states[episode.state as usize], self.states[episode.goal as usize]);
        length(sub(place, goal)) < self.settings.success_radius
    }

    fn position(&self, episode: &PointEpisode) -> [f32; 2] {
        self.states[episode.state as usize]
    }

    fn places(&self) -> Option<&[[f32; 2]]> {
        Some(&self.states)
    }
}

/// A list of states for every state, with their places beside them, coordinate by coordinate.
///
/// Lists are padded with their first entry to whole blocks, so that the nearest place is found
/// without a remainder to look after.
#[derive(Clone, Debug)]
struct Lists {
    /// Where each list begins, in blocks, and where the last one ends.
    starts: Vec<u32>,
    lengths: Vec<u32>,
    states: Vec<u32>,
    x: Vec<f32>,
    y: Vec<f32>,
}

/// Entries looked at side by side.
const BLOCK: usize = 16;

impl Lists {
    fn new(lists: Vec<Vec<u32>>, places: &[[f32; 2]]) -> Self {
        let (mut starts, mut lengths, mut states) = (vec![0], Vec::new(), Vec::new());
        for list in lists {
            lengths.push(list.len() as u32);
            let padding = list.len().next_multiple_of(BLOCK) - list.len();
            let first = list.first().copied();
            states.extend(list);
            states.extend(first.into_iter().cycle().take(padding));
            starts.push((states.len() / BLOCK) as u32);
        }
        let along =
            |axis: usize| states.iter().map(|&state| places[state as usize][axis]).collect();
        let (x, y) = (along(0), along(1));
        Self { starts, lengths, states, x, y }
    }

    /// The list of a state.
    fn of(&self, state: usize) -> &[u32] {
        &self.states[self.starts[state] as usize * BLOCK..][..self.lengths[state] as usize]
    }

    /// The place in a state's list that is nearest to `aim`, and its state; the first of equally
    /// near ones.
    fn nearest(&self, state: usize, aim: [f32; 2]) -> (u32, [f32; 2]) {
        let blocks = self.starts[state] as usize..self.starts[state + 1] as usize;
        let range = blocks.start * BLOCK..blocks.end * BLOCK;
        let (x, _) = self.x[range.clone()].as_chunks::<BLOCK>();
        let (y, _) = self.y[range.clone()].as_chunks::<BLOCK>();
        let square = |x: f32, y: f32| (x - aim[0]) * (x - aim[0]) + (y - aim[1]) * (y - aim[1]);
        let mut least = [f32::INFINITY; BLOCK];
        for (x, y) in x.iter().zip(y) {
            for lane in 0..BLOCK {
                let found = square(x[lane], y[lane]);
                least[lane] = if found < least[lane] { found } else { least[lane] };
            }
        }
        let least = least.into_iter().fold(f32::INFINITY, f32::min);
        let is_least = |&at: &usize| square(self.x[at], self.y[at]) == least;
        // There is one unless the aim is not a number, and then every place will do.
        let at = range.clone().find(is_least).unwrap_or(range.start);
        (self.states[at], [self.x[at], self.y[at]])
    }
}

/// Each state once: only which is nearest will be asked, so how often one is named does not matter.
fn distinct(states: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut states: Vec<_> = states.collect();
    states.sort_unstable();
    states.dedup();
    states
}

/// `settings.states` of the points, each at most once, every choice equally likely.
fn draw_states(points: &[[f32; 2]], settings: &PointMazeSettings) -> Vec<[f32; 2]> {
    let mut random = Philox::new(settings.seed).stream(0, streams::STATES);
    let mut left = points.to_vec();
    for taken in 0..settings.states {
        let others = (left.len() - taken) as u64;
        left.swap(taken, taken + below_u64(random.next_u64(), others) as usize);
    }
    left.truncate(settings.states);
    left
}
