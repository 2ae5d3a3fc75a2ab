//! How well an expert finds its way through the mazes.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use cm_envs::ant_maze::{ACTION, Animation, AntMaze, CellRule, Guide, Maze, Paths, STATE, Task};
use cm_envs::mujoco::Mujoco;
use cm_envs::{Outcome, Rollout, rollout, success_rate};
use cm_random::Philox;
use indicatif::ProgressBar;
use rayon::prelude::*;

use super::policy::Expert;

/// The stream of noise on the expert's actions.
const NOISE: u32 = 0x221;

#[derive(Args)]
pub(super) struct Arguments {
    /// The mazes, by the names of tasks.
    #[arg(default_values = ["umaze", "medium-play", "large-play"])]
    tasks: Vec<Task>,
    /// A file of the same form as the shipped one.
    #[arg(long, value_name = "FILE", default_value_os_t = Expert::shipped())]
    expert: PathBuf,
    /// How the cell of a place is found: floor (D4RL's rule) or round.
    #[arg(long, default_value = "floor")]
    cells: CellRule,
    /// Standard deviation of the noise on actions.
    #[arg(long, default_value_t = Guide::NOISE)]
    noise: f32,
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for pictures of the paths and for an animation of the first episode in each maze.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What to run: which expert, guided how.
struct Evaluation<'a> {
    expert: &'a Expert,
    cells: CellRule,
    noise: f32,
    seed: u64,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mujoco = Mujoco::find()?;
    let expert = Expert::load(&arguments.expert)?;
    let Arguments { cells, noise, seed, episodes, .. } = *arguments;
    let evaluation = Evaluation { expert: &expert, cells, noise, seed };
    println!("cells by {cells}, noise {noise}, {episodes} episodes");
    for &task in &arguments.tasks {
        let maze = AntMaze::new(&mujoco, task)?;
        let outcomes = evaluation.run(&maze, episodes, |_| ())?;
        println!("{}", describe(task.maze(), &outcomes));
        if let Some(folder) = &arguments.out {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("could not create {}", folder.display()))?;
            evaluation.draw(&maze, &outcomes, folder)?;
        }
    }
    Ok(())
}

impl Evaluation<'_> {
    /// Runs episodes by the protocol of the evaluation; `watch` sees the first one's state before every step, as long as it runs.
    fn run(
        &self,
        maze: &AntMaze,
        episodes: usize,
        mut watch: impl FnMut([f64; STATE]),
    ) -> anyhow::Result<Vec<Outcome>> {
        let guide = Guide::new(maze.task().maze(), self.cells, self.noise)?;
        let plan = Rollout { episodes, seed: self.seed, paths: episodes };
        let philox = Philox::new(self.seed);
        let bar = ProgressBar::new(maze.task().horizon() as u64).with_message(maze.task().name());
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
                let policy = |input: &_, action: &mut _| self.expert.act(input, action);
                action.copy_from_slice(&guide.act(&state, goal, &mut random, policy));
            });
            step += 1;
            bar.inc(1);
            Ok::<(), cm_envs::Error>(())
        });
        bar.finish_and_clear();
        Ok(outcomes?)
    }

    fn draw(
        &self,
        maze: &AntMaze,
        outcomes: &[Outcome],
        folder: &std::path::Path,
    ) -> anyhow::Result<()> {
        let name = maze.task().name();
        let title = format!("{name}: {:.0} % reach the goal", 100.0 * success_rate(outcomes));
        let picture = Paths { maze: maze.task().maze(), outcomes, title: &title };
        let path = folder.join(format!("{name}.png"));
        picture.save(&path)?;
        println!("  {}", path.display());
        // The first episode alone goes the same way again.
        let mut states = Vec::new();
        let first = self.run(maze, 1, |state| states.push(state))?;
        if let [Outcome { goal, .. }] = &first[..] {
            let goal = [goal[0].into(), goal[1].into()];
            let animation = Animation { maze: maze.task().maze(), states: &states, goal, every: 2 };
            let path = folder.join(format!("{name}.gif"));
            animation.save(&path)?;
            println!("  {}", path.display());
        }
        Ok(())
    }
}

fn state_of(row: &[f32]) -> [f64; STATE] {
    std::array::from_fn(|index| row[index].into())
}

fn describe(maze: Maze, outcomes: &[Outcome]) -> String {
    let mut steps: Vec<_> =
        outcomes.iter().filter(|outcome| outcome.success).map(|outcome| outcome.steps).collect();
    steps.sort_unstable();
    let median = steps.get(steps.len() / 2).map_or("none".to_owned(), usize::to_string);
    format!(
        "{maze}: {:.0} % of {} reach the goal, the median of them after {median} steps",
        100.0 * success_rate(outcomes),
        outcomes.len()
    )
}
