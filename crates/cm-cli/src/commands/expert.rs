//! `cm expert`: the policy that walks where the data sets of AntMaze are generated.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cm_data::expert::{EvaluateSettings, Evaluator, ExpertFile, TrainSettings};
use cm_envs::ant_maze::{CellRule, Guide, Maze, Task};

use crate::bars::Bars;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send an expert through the mazes by the protocol of the evaluation, and say how often it
    /// arrives.
    #[command(after_help = "Examples:\n  cm expert evaluate\n  \
            cm expert evaluate umaze --cells round --out figures")]
    Evaluate(EvaluateArguments),
    /// Train an expert from scratch by proximal policy optimisation, resuming an earlier training.
    #[command(after_help = "Examples:\n  cm expert train --out runs/floor\n  \
            cm expert train --out runs/large --maze large --from runs/floor/expert.safetensors")]
    Train(TrainArguments),
}

#[derive(Args)]
struct EvaluateArguments {
    /// The mazes, by the names of tasks.
    #[arg(default_values = ["umaze", "medium-play", "large-play"])]
    tasks: Vec<Task>,
    /// A file of the same form as the shipped one, which is used if none is given.
    #[arg(long, value_name = "FILE")]
    expert: Option<PathBuf>,
    /// How the cell of a place is found: floor (D4RL's rule) or round.
    #[arg(long, default_value = "floor")]
    cells: CellRule,
    /// Standard deviation of the noise on actions.
    #[arg(long, default_value_t = Guide::NOISE)]
    noise: f32,
    /// Episodes in each maze.
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    /// The same seed gives the same episodes.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for pictures of the paths and for an animation of the first episode in each maze.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct TrainArguments {
    /// Folder for the expert, the checkpoint and the metrics; a training that is there already goes
    /// on.
    #[arg(long, value_name = "FOLDER", default_value = "runs/expert")]
    out: PathBuf,
    /// Walk in this maze (umaze, medium or large) instead of on an open floor.
    #[arg(long, value_parser = maze)]
    maze: Option<Maze>,
    /// Steps of the environment.
    #[arg(long, default_value_t = 3_000_000)]
    steps: u64,
    /// Start from this expert, a file or the word `shipped`, instead of from nothing.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Ants that walk at once.
    #[arg(long, default_value_t = 128)]
    ants: usize,
    /// The same seed gives the same expert, on any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use; 0 for all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

fn maze(text: &str) -> Result<Maze, String> {
    let maze = Maze::ALL.into_iter().find(|maze| maze.to_string() == text);
    maze.ok_or_else(|| "expected umaze, medium or large".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Evaluate(arguments) => evaluate(arguments),
        Command::Train(arguments) => train(arguments),
    }
}

fn evaluate(arguments: &EvaluateArguments) -> anyhow::Result<()> {
    let EvaluateArguments { cells, noise, episodes, seed, .. } = *arguments;
    let expert = arguments.expert.clone().map_or(ExpertFile::Shipped, ExpertFile::File);
    let evaluator = Evaluator::new(EvaluateSettings { expert, cells, noise, episodes, seed })?;
    println!("cells by {cells}, noise {noise}, {episodes} episodes");
    let bars = Bars::new();
    for &task in &arguments.tasks {
        let walks = evaluator.run(task, &|event| bars.show(event))?;
        println!("{walks}");
        if let Some(folder) = &arguments.out {
            for file in evaluator.draw(&walks, folder, &|event| bars.show(event))? {
                println!("  {}", file.display());
            }
        }
    }
    Ok(())
}

fn train(arguments: &TrainArguments) -> anyhow::Result<()> {
    let TrainArguments { maze, steps, ants, seed, threads, .. } = *arguments;
    let from = arguments.from.clone().map(|path| match path.to_str() {
        Some("shipped") => ExpertFile::Shipped,
        _ => ExpertFile::File(path),
    });
    let folder = arguments.out.clone();
    let settings = TrainSettings { folder, maze, steps, from, ants, seed, threads };
    let bars = Bars::new();
    let expert = cm_data::expert::train(&settings, &|event| bars.show(event))?;
    drop(bars);
    println!("{}", expert.display());
    Ok(())
}
