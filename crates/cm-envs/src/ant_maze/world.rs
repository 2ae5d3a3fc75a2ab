//! AntMaze as an environment.

use std::ops::Range;
use std::sync::Arc;

use cm_random::Stream;

use super::{ACTION, Ant, STATE, Task, standing};
use crate::mujoco::{Model, Mujoco};
use crate::{Env, Error};

/// How near to the goal is near enough.
const SUCCESS_RADIUS: f64 = 0.5;

/// A task of AntMaze with D4RL's evaluation protocol (see the [module](super)).
///
/// ```
/// use cm_envs::ant_maze::{AntMaze, Task};
/// use cm_envs::{Env, Rollout, rollout, success_rate};
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let maze = AntMaze::new(&mujoco, Task::Umaze)?;
/// assert_eq!((maze.observation_width(), maze.action_width(), maze.horizon()), (29, 8, 700));
/// // A policy that does nothing gets nowhere.
/// # /*
/// let plan = Rollout { episodes: 50, seed: 1, paths: 0 };
/// # */
/// # let plan = Rollout { episodes: 1, seed: 1, paths: 0 };
/// let outcomes = rollout(&maze, &plan, |_observations, _goals, actions| {
///     actions.fill(0.0);
///     Ok::<(), cm_envs::Error>(())
/// })?;
/// assert_eq!(success_rate(&outcomes), 0.0);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AntMaze {
    task: Task,
    model: Arc<Model>,
}

/// One episode of an [`AntMaze`].
#[derive(Debug)]
pub struct AntEpisode {
    ant: Ant,
    goal: [f64; 2],
}

impl AntMaze {
    /// The environment of `task`.
    pub fn new(mujoco: &Mujoco, task: Task) -> Result<Self, Error> {
        Ok(Self { task, model: Ant::model(mujoco, Some(task.maze()))? })
    }

    /// The task.
    pub fn task(&self) -> Task {
        self.task
    }

    /// The model of the ant in its maze.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }
}

impl AntEpisode {
    /// The ant.
    pub fn ant(&self) -> &Ant {
        &self.ant
    }

    /// Puts the ant into another state; the goal remains.
    pub fn place(&mut self, state: &[f64; STATE]) -> Result<(), Error> {
        self.ant.place(state)
    }
}

impl Env for AntMaze {
    type Episode = AntEpisode;

    fn name(&self) -> &str {
        self.task.name()
    }

    fn observation_width(&self) -> usize {
        STATE
    }

    fn action_width(&self) -> usize {
        ACTION
    }

    fn goal_columns(&self) -> Range<usize> {
        0..2
    }

    fn horizon(&self) -> usize {
        self.task.horizon()
    }

    fn begin(&self, mut random: Stream) -> Result<AntEpisode, Error> {
        let mut ant = Ant::new(&self.model)?;
        ant.place(&standing(&mut random))?;
        Ok(AntEpisode { ant, goal: self.task.draw_goal(&mut random) })
    }

    fn observe(&self, episode: &mut AntEpisode, observation: &mut [f32]) {
        observation.copy_from_slice(&episode.ant.state().map(|number| number as f32));
    }

    fn goal(&self, episode: &AntEpisode, goal: &mut [f32]) {
        goal.copy_from_slice(&episode.goal.map(|number| number as f32));
    }

    fn step(&self, episode: &mut AntEpisode, action: &[f32]) -> Result<(), Error> {
        episode.ant.step(action)
    }

    fn succeeded(&self, episode: &AntEpisode) -> bool {
        is_near(episode.ant.xy(), episode.goal)
    }

    fn position(&self, episode: &AntEpisode) -> [f32; 2] {
        episode.ant.xy().map(|number| number as f32)
    }

    fn walls(&self) -> Vec<[[f32; 2]; 2]> {
        let walls = self.task.maze().walls().into_iter();
        walls.map(|corners| corners.map(|corner| corner.map(|number| number as f32))).collect()
    }
}

/// Whether a place counts as the goal: within 0.5 of it.
pub fn is_near(place: [f64; 2], goal: [f64; 2]) -> bool {
    (place[0] - goal[0]).hypot(place[1] - goal[1]) <= SUCCESS_RADIUS
}
