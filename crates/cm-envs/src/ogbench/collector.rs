//! How OGBench collects its data.

use std::sync::Arc;

use cm_random::{Philox, Stream, below_u64, normal_pair};
use rand_core::Rng;

use super::{Agent, Behaviour, Body, Cell, Navigator, OgTask, streams};
use crate::Error;
use crate::mujoco::{Model, Mujoco};

/// Steps between two directions of [`Behaviour::Explore`].
const DIRECTION_STEPS: usize = 10;
/// How many cells away the goals of [`Behaviour::Stitch`] are.
const STITCH_STEPS: usize = 4;

/// Everything that happens by chance while data is collected.
pub trait Chance {
    /// Where the episode starts, and the body's state there: positions, then velocities.
    fn start(&mut self, body: &mut Body) -> Result<(), Error>;

    /// A place to go to, from an episode's first row on or, in [`Behaviour::Navigate`], whenever
    /// the one before is reached. Asked for in every behaviour.
    fn goal(&mut self) -> [f64; 2];

    /// Two normal numbers, whose direction is gone in.
    fn direction(&mut self) -> [f64; 2];

    /// Normal numbers, added to an action after they were multiplied by the noise's deviation.
    fn noise(&mut self, normals: &mut [f64]);

    /// Which of the exits a teleport leads to.
    fn exit(&mut self) -> usize;
}

/// Chance by the counter-based generator.
#[derive(Clone, Debug)]
pub struct Draws<'a> {
    collector: &'a Collector,
    random: Stream,
    start: Cell,
}

impl Chance for Draws<'_> {
    fn start(&mut self, body: &mut Body) -> Result<(), Error> {
        self.start = one_of(&self.collector.free, &mut self.random);
        let place = self.start.place(&mut self.random);
        body.reset(place, &mut self.random)
    }

    fn goal(&mut self) -> [f64; 2] {
        let Collector { task, navigator, vertices, .. } = self.collector;
        let cell = match task.behaviour {
            Behaviour::Navigate | Behaviour::Explore => one_of(vertices, &mut self.random),
            Behaviour::Stitch => match navigator.at_distance(self.start, STITCH_STEPS) {
                none if none.is_empty() => self.start,
                cells => one_of(&cells, &mut self.random),
            },
        };
        cell.place(&mut self.random)
    }

    fn direction(&mut self) -> [f64; 2] {
        let mut normals = [0.0; 2];
        self.noise(&mut normals);
        normals
    }

    fn noise(&mut self, normals: &mut [f64]) {
        for pair in normals.chunks_mut(2) {
            let (first, second) = normal_pair(self.random.next_u32(), self.random.next_u32());
            for (number, normal) in pair.iter_mut().zip([first, second]) {
                *number = f64::from(normal);
            }
        }
    }

    fn exit(&mut self) -> usize {
        Body::draw_exit(&mut self.random)
    }
}

/// Collects the data of a task: starts episodes anywhere, and sends them by its behaviour.
///
/// A policy goes in the direction it is given: the point's is that direction, the ant's is learned
/// and sees the state without its place and the direction, 29 numbers. Actions are the policy's
/// plus normal noise, clipped to `[-1, 1]`. The way leads over the centres of cells, also in the
/// goal's own cell, so that a goal far from its cell's centre is reached by chance alone.
///
/// ```
/// use cm_envs::ogbench::Collector;
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let collector = Collector::new(&mujoco, "pointmaze-medium-stitch-v0".parse()?, 1)?;
/// let episode = collector.collect(0, 20, |_input, _action| ())?;
/// assert_eq!((episode.observations.len(), episode.actions.len()), (40, 40));
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Collector {
    task: OgTask,
    seed: u64,
    model: Arc<Model>,
    navigator: Navigator,
    free: Vec<Cell>,
    vertices: Vec<Cell>,
}

/// One episode of the data, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// What was seen before each step.
    pub observations: Vec<f32>,
    /// What was done.
    pub actions: Vec<f32>,
    /// The position before each step, which is not what was seen if the step before teleported.
    pub positions: Vec<f32>,
    /// The velocity before each step.
    pub velocities: Vec<f32>,
    /// From which row on each goal was gone to.
    pub goals: Vec<(usize, [f64; 2])>,
    /// In which rows the goal was reached, in the step after which a new one was chosen or would
    /// have been.
    pub reached: Vec<usize>,
    /// The rows whose step ended in a teleport.
    pub teleported: Vec<usize>,
}

impl Collector {
    /// For the data of `task`. The same seed gives the same episodes.
    pub fn new(mujoco: &Mujoco, task: OgTask, seed: u64) -> Result<Self, Error> {
        Ok(Self {
            task,
            seed,
            model: Body::model(mujoco, task.agent, task.maze)?,
            navigator: Navigator::new(task.maze),
            free: task.maze.free_cells(),
            vertices: task.maze.vertex_cells(),
        })
    }

    /// The task.
    pub fn task(&self) -> OgTask {
        self.task
    }

    /// Collects `rows` rows of episode `number`; it does not depend on any other episode. `policy`
    /// fills in an ant's action for what it sees; the point has no need of it.
    pub fn collect(
        &self,
        number: u64,
        rows: usize,
        policy: impl Fn(&[f32], &mut [f32]),
    ) -> Result<Collected, Error> {
        let random = Philox::new(self.seed).stream(number, streams::DATA);
        let mut draws = Draws { collector: self, random, start: Cell { row: 1, column: 1 } };
        self.collect_by(&mut draws, rows, self.task.noise(), policy)
    }

    /// The same by any chance and with any deviation of the noise.
    pub fn collect_by(
        &self,
        chance: &mut impl Chance,
        rows: usize,
        noise: f64,
        policy: impl Fn(&[f32], &mut [f32]),
    ) -> Result<Collected, Error> {
        let OgTask { agent, maze, behaviour } = self.task;
        let mut body = Body::of_model(&self.model, agent, maze)?;
        chance.start(&mut body)?;
        let mut goal = chance.goal();
        let mut episode = Collected { goals: vec![(0, goal)], ..Collected::default() };
        let mut explored = [0.0; 2];
        for row in 0..rows {
            let direction = match behaviour {
                Behaviour::Explore => {
                    if row % DIRECTION_STEPS == 0 {
                        explored = unit(chance.direction());
                    }
                    explored
                }
                Behaviour::Navigate | Behaviour::Stitch => {
                    self.navigator.direction(body.xy(), goal)
                }
            };
            let mut action = self.expert(&body, direction, &policy);
            let mut normals = vec![0.0; action.len()];
            chance.noise(&mut normals);
            for (number, normal) in action.iter_mut().zip(normals) {
                *number = (*number + noise * normal).clamp(-1.0, 1.0);
            }
            let (positions, velocities) = body.state().split_at(agent.positions());
            episode.observations.extend(body.observation().iter().map(|&x| x as f32));
            episode.actions.extend(action.iter().map(|&x| x as f32));
            episode.positions.extend(positions.iter().map(|&x| x as f32));
            episode.velocities.extend(velocities.iter().map(|&x| x as f32));
            let moved = body.step(&action, || chance.exit())?;
            if moved.teleported {
                episode.teleported.push(row);
            }
            let [x, y] = moved.place;
            if (x - goal[0]).hypot(y - goal[1]) <= agent.success_radius() {
                episode.reached.push(row);
                if behaviour == Behaviour::Navigate {
                    goal = chance.goal();
                    episode.goals.push((row + 1, goal));
                }
            }
        }
        Ok(episode)
    }

    /// What is done to go in a direction.
    fn expert(
        &self,
        body: &Body,
        direction: [f64; 2],
        policy: impl Fn(&[f32], &mut [f32]),
    ) -> Vec<f64> {
        if self.task.agent == Agent::Point {
            return direction.to_vec();
        }
        let seen = body.observation()[2..].iter().chain(&direction);
        let input: Vec<f32> = seen.map(|&number| number as f32).collect();
        let mut action = vec![0.0; self.task.agent.action_width()];
        policy(&input, &mut action);
        action.into_iter().map(f64::from).collect()
    }
}

/// The direction of a vector.
fn unit([x, y]: [f64; 2]) -> [f64; 2] {
    let length = (x * x + y * y).sqrt() + 1e-6;
    [x / length, y / length]
}

fn one_of(cells: &[Cell], random: &mut Stream) -> Cell {
    cells[below_u64(random.next_u64(), cells.len() as u64) as usize]
}
