//! How well an expert finds its way through the mazes.

use std::fmt;
use std::path::{Path, PathBuf};

use cm_envs::ant_maze::{
    ACTION, Animation, AntMaze, CellRule, Guide, Maze, Paths, Recipe, STATE, Task,
};
use cm_envs::mujoco::Mujoco;
use cm_envs::{Outcome, Rollout, rollout, success_rate};
use cm_random::{Philox, Stream};
use rayon::prelude::*;

use super::policy::{Expert, ExpertFile};
use crate::progress::Stage;
use crate::{Progress, Result, Unit, output};

/// The stream of noise on the expert's actions.
const NOISE: u32 = 0x221;

/// What to run: which expert, guided how.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluateSettings {
    /// How waypoints are disturbed, and whether actions are drawn or the policy's mean.
    pub recipe: Recipe,
    /// The policy that walks; the recipe's own for each maze if none is named.
    pub expert: Option<ExpertFile>,
    /// How the cell of a place is found.
    pub cells: CellRule,
    /// Standard deviation of the noise on actions.
    pub noise: f32,
    /// Episodes in each maze.
    pub episodes: usize,
    /// The same seed gives the same episodes.
    pub seed: u64,
}

impl Default for EvaluateSettings {
    fn default() -> Self {
        Self {
            recipe: Recipe::D4rl,
            expert: None,
            cells: CellRule::Floor,
            noise: Guide::NOISE,
            episodes: 50,
            seed: 0,
        }
    }
}

/// Sends an expert through mazes by the protocol of the evaluation.
pub struct Evaluator {
    mujoco: Mujoco,
    /// The one that was named.
    named: Option<Expert>,
    settings: EvaluateSettings,
}

/// What became of an expert's episodes in a maze; prints as one line.
#[derive(Clone, Debug)]
pub struct Walks {
    /// The maze and its goals.
    pub task: Task,
    /// One for each episode.
    pub outcomes: Vec<Outcome>,
}

impl Evaluator {
    /// Finds the simulator and reads the expert if one is named.
    pub fn new(settings: EvaluateSettings) -> Result<Self> {
        let named = settings.expert.as_ref().map(Expert::open).transpose()?;
        let mujoco = Mujoco::find()?;
        Ok(Self { mujoco, named, settings })
    }

    /// Who walks in a maze.
    fn expert(&self, maze: Maze) -> Result<Expert> {
        let shipped = || Expert::open(&ExpertFile::of(self.settings.recipe, maze));
        self.named.clone().map_or_else(shipped, Ok)
    }

    /// Walks in the maze of `task`.
    pub fn run(&self, task: Task, progress: Progress<'_>) -> Result<Walks> {
        let maze = AntMaze::new(&self.mujoco, task)?;
        let outcomes = self.walk(&maze, self.settings.episodes, |_| (), progress)?;
        Ok(Walks { task, outcomes })
    }

    /// Draws the paths of `walks` and an animation of the first into `folder`, and says where.
    pub fn draw(
        &self,
        walks: &Walks,
        folder: &Path,
        progress: Progress<'_>,
    ) -> Result<Vec<PathBuf>> {
        output::make_folder(folder)?;
        let (task, maze) = (walks.task, walks.task.maze());
        let title = format!("{task}: {:.0} % reach the goal", 100.0 * walks.success_rate());
        let picture = folder.join(format!("{task}.png"));
        Paths { maze, outcomes: &walks.outcomes, title: &title }.save(&picture)?;
        let mut files = vec![picture];
        // The first episode alone goes the same way again.
        let mut states = Vec::new();
        let world = AntMaze::new(&self.mujoco, task)?;
        let first = self.walk(&world, 1, |state| states.push(state), progress)?;
        if let [Outcome { goal, .. }] = &first[..] {
            let goal = [goal[0].into(), goal[1].into()];
            let animation = folder.join(format!("{task}.gif"));
            Animation { maze, states: &states, goal, every: 2 }.save(&animation)?;
            files.push(animation);
        }
        Ok(files)
    }

    /// Runs episodes; `watch` sees the first one's state before every step, as long as it runs.
    fn walk(
        &self,
        maze: &AntMaze,
        episodes: usize,
        mut watch: impl FnMut([f64; STATE]),
        progress: Progress<'_>,
    ) -> Result<Vec<Outcome>> {
        let EvaluateSettings { recipe, cells, noise, seed, .. } = self.settings;
        let guide = Guide::new(maze.task().maze(), recipe, cells, noise)?;
        let expert = self.expert(maze.task().maze())?;
        let plan = Rollout { episodes, seed, paths: episodes };
        let philox = Philox::new(seed);
        let longest = maze.task().horizon() as u64;
        let stage = Stage::begin(progress, maze.task().name(), Unit::Steps, 0, Some(longest));
        let mut step = 0;
        let outcomes = rollout(maze, &plan, |states, goals, actions| {
            watch(state_of(&states[..STATE]));
            // Every episode that still runs has its own number in this step's stream.
            let rows = actions.par_chunks_exact_mut(ACTION).enumerate();
            rows.for_each(|(row, action)| {
                let mut random = philox.stream(step, NOISE);
                random.seek((row as u64) << 16);
                let state = state_of(&states[row * STATE..][..STATE]);
                let goal = [goals[2 * row].into(), goals[2 * row + 1].into()];
                let policy = |input: &_, random: &mut Stream, action: &mut _| {
                    expert.walk(recipe, input, random, action);
                };
                action.copy_from_slice(&guide.act(&state, goal, &mut random, policy));
            });
            step += 1;
            stage.advance(1);
            Ok::<(), cm_envs::Error>(())
        });
        Ok(outcomes?)
    }
}

impl Walks {
    /// The share of episodes that reach the goal.
    pub fn success_rate(&self) -> f64 {
        success_rate(&self.outcomes)
    }
}

impl fmt::Display for Walks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrived = self.outcomes.iter().filter(|outcome| outcome.success);
        let mut steps: Vec<_> = arrived.map(|outcome| outcome.steps).collect();
        steps.sort_unstable();
        let median = steps.get(steps.len() / 2);
        let median = median.map(|steps| format!(", the median of them after {steps} steps"));
        write!(
            formatter,
            "{}: {:.0} % of {} reach the goal{}",
            self.task.maze(),
            100.0 * self.success_rate(),
            self.outcomes.len(),
            median.unwrap_or_default()
        )
    }
}

fn state_of(row: &[f32]) -> [f64; STATE] {
    std::array::from_fn(|index| row[index].into())
}
