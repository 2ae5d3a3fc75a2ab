//! How D4RL collected its data: an ant that can walk in any direction is sent from cell to cell.

use std::sync::Arc;

use cm_random::{Philox, Stream};

use super::world::is_near;
use super::{ACTION, Ant, Guide, Recipe, STATE, Task, standing, streams};
use crate::Error;
use crate::mujoco::{Model, Mujoco};

/// Collects a task's data: starts episodes, sends and guides them by a recipe, and stores what D4RL
/// does. Episodes do not end at the goal.
///
/// ```
/// use cm_envs::ant_maze::{CellRule, Collector, Guide, Recipe, Task};
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let (task, recipe) = (Task::Umaze, Recipe::D4rl);
/// let guide = Guide::new(task.maze(), recipe, CellRule::Floor, Guide::NOISE)?;
/// let collector = Collector::new(&mujoco, task, recipe, guide, 1)?;
/// let episode = collector.collect(0, 3, |_input, _random, action| action.fill(0.0))?;
/// assert_eq!(episode.observations.len(), 3 * 29);
/// assert_eq!(episode.observations[29..], episode.next_states[..2 * 29]);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Collector {
    task: Task,
    recipe: Recipe,
    guide: Guide,
    seed: u64,
    model: Arc<Model>,
    rewarded_goal: [f64; 2],
}

/// The number under which the rewarded goal is drawn.
const REWARDED: u64 = u64::MAX;

/// What episode `number` is called among those of both kinds of data.
fn of_task(task: Task, number: u64) -> u64 {
    number ^ (u64::from(task.is_diverse()) << 48)
}

/// One episode of the data, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// The state before each step, 29 numbers each.
    pub observations: Vec<f32>,
    /// The action, 8 numbers each.
    pub actions: Vec<f32>,
    /// The state after the step, 29 numbers each.
    pub next_states: Vec<f32>,
    /// Whether the next observation of the episode is at the rewarded goal, as 1 or 0; 0 in the
    /// last row.
    pub rewards: Vec<f32>,
    /// Where the episode was sent.
    pub goal: [f32; 2],
}

impl Collector {
    /// For the data of `task`. The same seed gives the same episodes; those of `diverse` data are
    /// others than those of `play` even where both are of one distribution.
    pub fn new(
        mujoco: &Mujoco,
        task: Task,
        recipe: Recipe,
        guide: Guide,
        seed: u64,
    ) -> Result<Self, Error> {
        let model = Ant::model(mujoco, Some(task.maze()))?;
        // One goal is drawn for the rewards of the whole data set, as D4RL does.
        let mut random = Philox::new(seed).stream(of_task(task, REWARDED), streams::DATA);
        let rewarded_goal =
            task.maze().evaluation_goal().disturbed(recipe.goal_noise(), &mut random);
        Ok(Self { task, recipe, guide, seed, model, rewarded_goal })
    }

    /// The goal that the rewards are for: in the cell of the evaluation's goal, as far from its
    /// centre as the recipe says.
    pub fn rewarded_goal(&self) -> [f64; 2] {
        self.rewarded_goal
    }

    /// Collects `rows` rows of episode `number`; it does not depend on any other episode. `policy`
    /// is as [`Guide::act`] wants it.
    pub fn collect(
        &self,
        number: u64,
        rows: usize,
        policy: impl Fn(&[f32; STATE], &mut Stream, &mut [f32; ACTION]),
    ) -> Result<Collected, Error> {
        let mut random = Philox::new(self.seed).stream(of_task(self.task, number), streams::DATA);
        let mut ant = Ant::new(&self.model)?;
        let mut state = standing(&mut random);
        if let Some([x, y]) = self.task.draw_collection_start(&mut random) {
            (state[0], state[1]) = (x, y);
        }
        let goal = self.task.draw_collection_goal(self.recipe, &mut random);
        ant.place(&state)?;

        let mut episode =
            Collected { goal: goal.map(|number| number as f32), ..Collected::default() };
        for step in 0..rows {
            let action = self.guide.act(ant.state(), goal, &mut random, &policy);
            episode.observations.extend(ant.state().map(|number| number as f32));
            episode.actions.extend(action);
            if step > 0 {
                episode.rewards.push(f32::from(is_near(ant.xy(), self.rewarded_goal)));
            }
            ant.step(&action)?;
            episode.next_states.extend(ant.state().map(|number| number as f32));
        }
        episode.rewards.push(0.0);
        Ok(episode)
    }
}
