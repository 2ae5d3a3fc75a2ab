//! What a learned distance of the 2-D world is asked to show.

use std::collections::VecDeque;

use cm_envs::point_maze::PointMaze;
use cm_random::{Philox, Stream, below_u64};
use cm_train::{GreedyPath, Links, Method, Model, Planner, RoadMap};
use rand_core::Rng;

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Findings {
    /// Triples of random states.
    pub(super) triples: usize,
    /// How many of them violate the triangle inequality by more than rounding.
    pub(super) violated: usize,
    /// Random pairs of states that the paths connect.
    pub(super) pairs: usize,
    /// How many of their greedy paths arrive, by the learned distance to the goal alone.
    pub(super) arrived: usize,
    /// How many arrive by distances composed of short ones.
    pub(super) arrived_by_links: usize,
    /// Pairs of places on one path, at least [`APART`] apart.
    pub(super) on_one_path: usize,
    /// How many of them are learned to be farther against the path's direction than with it.
    pub(super) farther_back: usize,
    /// Mean length of paths along links with the direction and against it, of those pairs for which
    /// both arrive.
    pub(super) lengths: Option<[f32; 2]>,
}

/// How far one move of a greedy path may go, and how near to the goal is near enough (that of the
/// world's episodes).
pub(super) const PLANNER: Planner = Planner { radius: 2.0, longest: 500, arrived: 2.0 };

/// Places of a road map.
const PLACES: usize = 2_000;

/// Which of them are linked: a few moves apart, in nats or in QRL's steps.
pub(super) fn links(method: Method) -> Links {
    Links { radius: 3.0, longest: if method == Method::Qrl { 10.0 } else { 3.0 } }
}

/// Distance along the plane between pairs on one path.
const APART: f32 = 10.0;
const TRIPLES: usize = 1_000_000;
const GOALS: usize = 40;
const STARTS: usize = 8;

/// Relative rounding that a sum of two distances may have.
const ROUNDING: f32 = 1e-5;

pub(super) fn study(model: &Model, maze: &PointMaze) -> anyhow::Result<Findings> {
    let mut random = Numbers::new(0x300);
    let violated = violated(model, maze, &mut random)?;
    let places = road_map_places(maze);
    let map = RoadMap::new(model, &places, links(model.settings().method.method()))?;
    let [pairs, arrived, arrived_by_links] = connected(model, &map, maze, &mut random)?;
    let back = with_and_against(model, &map, maze, &mut random)?;
    Ok(Findings {
        triples: TRIPLES,
        violated,
        pairs,
        arrived,
        arrived_by_links,
        on_one_path: back.pairs,
        farther_back: back.farther,
        lengths: back.lengths,
    })
}

/// Random states for a road map, the same for every model.
pub(super) fn road_map_places(maze: &PointMaze) -> Vec<f32> {
    let mut random = Numbers::new(0x301);
    (0..PLACES).flat_map(|_| maze.states()[random.below(maze.states().len())]).collect()
}

/// Triples of some hundred random states, whose distances are each computed once.
fn violated(model: &Model, maze: &PointMaze, random: &mut Numbers) -> anyhow::Result<usize> {
    const STATES: usize = 500;
    let states: Vec<[f32; 2]> =
        (0..STATES).map(|_| maze.states()[random.below(maze.states().len())]).collect();
    let all: Vec<f32> = states.iter().flatten().copied().collect();
    let mut distances = Vec::with_capacity(STATES * STATES);
    for state in &states {
        distances.extend(model.distances_from(state, &all)?);
    }
    let d = |from: usize, to: usize| distances[from * STATES + to];
    let violates = |[a, b, c]: [usize; 3]| d(a, c) > (d(a, b) + d(b, c)) * (1.0 + ROUNDING);
    let triple = |_| std::array::from_fn(|_| random.below(STATES));
    Ok((0..TRIPLES).map(triple).filter(|&triple| violates(triple)).count())
}

/// Paths between random pairs that the paths connect: how many pairs, how many arrive greedily, how
/// many along links.
fn connected(
    model: &Model,
    map: &RoadMap,
    maze: &PointMaze,
    random: &mut Numbers,
) -> anyhow::Result<[usize; 3]> {
    let places = maze.states().as_flattened();
    let arrived = |paths: &[GreedyPath]| paths.iter().filter(|path| path.arrived).count();
    let mut counts = [0; 3];
    for _ in 0..GOALS {
        let goal = random.below(maze.states().len());
        let starts: Vec<usize> = (0..STARTS)
            .map(|_| random.below(maze.states().len()))
            .filter(|&start| reaches(maze, start, goal))
            .collect();
        if starts.is_empty() {
            continue;
        }
        let starts: Vec<f32> = starts.iter().flat_map(|&start| maze.states()[start]).collect();
        let goal = &maze.states()[goal];
        counts[0] += starts.len() / 2;
        counts[1] += arrived(&PLANNER.paths(model, places, &starts, goal)?);
        counts[2] += arrived(&map.paths(model, &starts, goal)?);
    }
    Ok(counts)
}

/// Whether the successors of `start`, theirs and so on come near `goal`.
fn reaches(maze: &PointMaze, start: usize, goal: usize) -> bool {
    let aim = maze.states()[goal];
    let near = |state: usize| {
        let place = maze.states()[state];
        (place[0] - aim[0]).hypot(place[1] - aim[1]) < maze.settings().success_radius
    };
    let mut seen = vec![false; maze.states().len()];
    let mut waiting = VecDeque::from([start]);
    seen[start] = true;
    while let Some(state) = waiting.pop_front() {
        if near(state) {
            return true;
        }
        for &next in maze.successors(state) {
            if !std::mem::replace(&mut seen[next as usize], true) {
                waiting.push_back(next as usize);
            }
        }
    }
    false
}

struct ThereAndBack {
    pairs: usize,
    farther: usize,
    lengths: Option<[f32; 2]>,
}

/// Pairs of places on one path, there and back.
fn with_and_against(
    model: &Model,
    map: &RoadMap,
    maze: &PointMaze,
    random: &mut Numbers,
) -> anyhow::Result<ThereAndBack> {
    const PAIRS: usize = 100;
    let (mut farther, mut found, mut lengths, mut both) = (0, 0, [0.0; 2], 0);
    while found < PAIRS {
        let path = &maze.paths()[random.below(maze.paths().len())].points;
        let (first, second) = (random.below(path.len()), random.below(path.len()));
        let (early, late) = (path[first.min(second)], path[first.max(second)]);
        if (early[0] - late[0]).hypot(early[1] - late[1]) < APART {
            continue;
        }
        found += 1;
        let (there, back) =
            (model.distances(&early, &late)?[0], model.distances(&late, &early)?[0]);
        farther += usize::from(back > there);
        let (there, back) =
            (&map.paths(model, &early, &late)?[0], &map.paths(model, &late, &early)?[0]);
        if there.arrived && back.arrived {
            both += 1;
            lengths[0] += there.length();
            lengths[1] += back.length();
        }
    }
    let lengths = (both > 0).then(|| lengths.map(|sum| sum / both as f32));
    Ok(ThereAndBack { pairs: PAIRS, farther, lengths })
}

/// Which states to look at.
struct Numbers(Stream);

impl Numbers {
    /// One of the streams of programs.
    fn new(stream: u32) -> Self {
        Self(Philox::new(0).stream(0, stream))
    }

    fn below(&mut self, bound: usize) -> usize {
        below_u64(self.0.next_u64(), bound as u64) as usize
    }
}
