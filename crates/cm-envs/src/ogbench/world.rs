//! A maze as an environment.

use std::ops::Range;
use std::sync::Arc;

use cm_random::{Stream, below_u64, unit_f64};
use rand_core::Rng;

use super::{Body, Cell, Maze, OgTask};
use crate::mujoco::{Model, Mujoco};
use crate::{Env, Error};

/// A maze with OGBench's evaluation protocol (see the [module](super)).
///
/// ```
/// use cm_envs::{Env, Rollout, rollout};
/// use cm_envs::ogbench::OgMaze;
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let maze = OgMaze::new(&mujoco, "pointmaze-medium-navigate-v0".parse()?)?;
/// assert_eq!((maze.observation_width(), maze.action_width(), maze.tasks()), (2, 2, 5));
/// let plan = Rollout { episodes: 5, seed: 1, paths: 0 };
/// let outcomes = rollout(&maze, &plan, |_observations, _goals, actions| {
///     actions.fill(0.0);
///     Ok::<(), cm_envs::Error>(())
/// })?;
/// assert!(outcomes.iter().all(|outcome| !outcome.success && outcome.steps == 1000));
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OgMaze {
    task: OgTask,
    name: String,
    model: Arc<Model>,
}

/// One episode of an [`OgMaze`].
#[derive(Debug)]
pub struct OgEpisode {
    body: Body,
    /// What is observed at the goal.
    goal: Vec<f64>,
    success: bool,
    random: Stream,
}

impl OgMaze {
    /// The environment of `task`; how its data was collected makes no difference.
    pub fn new(mujoco: &Mujoco, task: OgTask) -> Result<Self, Error> {
        let model = Body::model(mujoco, task.agent, task.maze)?;
        Ok(Self { task, name: task.name(), model })
    }

    /// The task.
    pub fn task(&self) -> OgTask {
        self.task
    }

    /// The model of the body in its maze.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// An episode from one place to another, neither of which need be a task's. Places inside walls
    /// or outside the maze are refused.
    pub fn begin_at(
        &self,
        start: [f64; 2],
        goal: [f64; 2],
        mut random: Stream,
    ) -> Result<OgEpisode, Error> {
        let maze = self.task.maze;
        for (what, place) in [("start", start), ("goal", goal)] {
            let outside = place.iter().any(|x| !x.is_finite() || *x < -4.0);
            if outside || maze.is_wall(maze.cell(place)) {
                return Err(Error::OutsideMaze { what, place, maze: maze.name() });
            }
        }
        let mut body = Body::of_model(&self.model, self.task.agent, maze)?;
        let goal = body.goal(goal, &mut random)?;
        body.reset(start, &mut random)?;
        Ok(OgEpisode { body, goal, success: false, random })
    }
}

impl OgEpisode {
    /// The body.
    pub fn body(&self) -> &Body {
        &self.body
    }
}

impl Cell {
    /// A place in the cell: its centre, and `U(-1, 1)` on each coordinate.
    pub(super) fn place(self, random: &mut Stream) -> [f64; 2] {
        self.center().map(|middle| middle + 2.0 * unit_f64(random.next_u64()) - 1.0)
    }
}

impl Env for OgMaze {
    type Episode = OgEpisode;

    fn name(&self) -> &str {
        &self.name
    }

    fn observation_width(&self) -> usize {
        self.task.agent.observation_width()
    }

    fn action_width(&self) -> usize {
        self.task.agent.action_width()
    }

    fn goal_columns(&self) -> Range<usize> {
        0..self.observation_width()
    }

    fn horizon(&self) -> usize {
        self.task.horizon()
    }

    fn tasks(&self) -> usize {
        Maze::TASKS
    }

    fn begin(&self, mut random: Stream) -> Result<OgEpisode, Error> {
        let task = below_u64(random.next_u64(), Maze::TASKS as u64) as usize;
        self.begin_task(task, random)
    }

    fn begin_task(&self, task: usize, mut random: Stream) -> Result<OgEpisode, Error> {
        let [start, goal] = self.task.maze.task(task % Maze::TASKS);
        let (start, goal) = (start.place(&mut random), goal.place(&mut random));
        self.begin_at(start, goal, random)
    }

    fn observe(&self, episode: &mut OgEpisode, observation: &mut [f32]) {
        for (seen, &number) in observation.iter_mut().zip(episode.body.observation()) {
            *seen = number as f32;
        }
    }

    fn goal(&self, episode: &OgEpisode, goal: &mut [f32]) {
        for (aim, &number) in goal.iter_mut().zip(&episode.goal) {
            *aim = number as f32;
        }
    }

    fn step(&self, episode: &mut OgEpisode, action: &[f32]) -> Result<(), Error> {
        if action.iter().any(|number| number.is_nan()) {
            return Err(Error::Action { found: action.to_vec() });
        }
        let action: Vec<f64> = action.iter().map(|x| f64::from(x.clamp(-1.0, 1.0))).collect();
        let OgEpisode { body, goal, success, random } = episode;
        let moved = body.step(&action, || Body::draw_exit(random))?;
        let away = (moved.place[0] - goal[0]).hypot(moved.place[1] - goal[1]);
        *success = away <= self.task.agent.success_radius();
        Ok(())
    }

    fn succeeded(&self, episode: &OgEpisode) -> bool {
        episode.success
    }

    fn position(&self, episode: &OgEpisode) -> [f32; 2] {
        episode.body.xy().map(|number| number as f32)
    }

    fn walls(&self) -> Vec<[[f32; 2]; 2]> {
        let maze = self.task.maze;
        let walls = maze.cells().filter(|&cell| maze.is_wall(cell));
        walls.map(|cell| cell.corners().map(|corner| corner.map(|x| x as f32))).collect()
    }
}
