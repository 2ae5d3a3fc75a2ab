//! `cm expert`: the policy that walks where the data sets of AntMaze are generated.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use cm_data::expert::{Actions, EvaluateSettings, Evaluator, ExpertFile, Rules, TrainSettings};
use cm_envs::ant_maze::{CellRule, Guide, Maze, Recipe, Task};

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
            cm expert train --recipe clean --out runs/large --maze large --from \
            runs/floor/expert.safetensors\n  \
            cm expert train --out runs/goals --from runs/floor/expert.safetensors --hold 60,200 \
            --reach 10 --spread 2\n  \
            cm expert train --out runs/squashed --from runs/floor/expert.safetensors --deviations \
            0.2,0.25 --gain 9,1.7 --steps 0")]
    Train(TrainArguments),
}

#[derive(Args)]
struct EvaluateArguments {
    /// The mazes, by the names of tasks.
    #[arg(default_values = ["umaze", "medium-play", "large-play"])]
    tasks: Vec<Task>,
    /// How waypoints are disturbed and actions drawn: d4rl, d4rl-code or clean.
    #[arg(long, default_value_t = Recipe::D4rl)]
    recipe: Recipe,
    /// A walking policy of ours, or D4RL's own brought to safetensors; the one that is shipped for
    /// the recipe if not given.
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
    /// Start from this expert, a file or the word `shipped` for the recipe's (d4rl: the one of the
    /// large maze), instead of from nothing.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Start from it as a mirror shows it: what it does to the left, the new one does to the right.
    #[arg(long, requires = "from")]
    mirrored: bool,
    /// Ants that walk at once.
    #[arg(long, default_value_t = 128)]
    ants: usize,
    /// The same seed gives the same expert, on any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use; 0 for all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Keep the expert as it is after every so many steps too, as expert-STEPS.safetensors.
    #[arg(long, value_name = "STEPS")]
    keep_every: Option<u64>,
    /// What the expert is for; rewards and ends of episodes come with it unless they are given
    /// below: d4rl (paid for progress alone, falls do not end an episode) or clean.
    #[arg(long, default_value = "d4rl")]
    recipe: ExpertRecipe,
    /// Paid for every step, in units per second.
    #[arg(long)]
    standing: Option<f64>,
    /// Charged for the mean square of an action, in units per second; below 0 it is paid.
    #[arg(long, allow_negative_numbers = true)]
    effort: Option<f64>,
    /// Whether a fall ends an episode.
    #[arg(long)]
    falls_end: Option<bool>,
    /// Steps after which an episode is over.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    longest: Option<u32>,
    /// The fewest and the most steps for which a direction or a goal stands on the open floor; with
    /// directions that stand for a whole episode the ant learns to run straight, not to turn.
    #[arg(long, value_parser = hold, value_name = "FEWEST,MOST", conflicts_with = "maze")]
    hold: Option<Hold>,
    /// The largest distance of goals on the open floor, in units; `inf` for directions that do not
    /// depend on where the ant is.
    #[arg(long)]
    reach: Option<f64>,
    /// How far beside its place every other goal seems to be, anew in each step, as D4RL's
    /// waypoints.
    #[arg(long)]
    spread: Option<f64>,
    /// Pay for the way to where a wavering goal is, not to where it seems to be.
    #[arg(long)]
    paid_to_goal: bool,
    /// What a reward one step later counts, at least 0 and below 1.
    #[arg(long)]
    discount: Option<f32>,
    /// Squash actions by tanh; these are the bounds of their standard deviations before that, which
    /// the state decides on.
    #[arg(long, value_parser = deviations, value_name = "LOW,HIGH")]
    deviations: Option<Actions>,
    /// What the means of a clipped expert are multiplied by where a squashed one starts from it.
    #[arg(long, value_parser = gain, value_name = "HIPS,ANKLES")]
    gain: Option<Gain>,
    /// Weight of the policy's entropy.
    #[arg(long)]
    entropy: Option<f32>,
}

/// Which data an expert is trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExpertRecipe {
    D4rl,
    Clean,
}

impl ExpertRecipe {
    fn shipped(self) -> ExpertFile {
        match self {
            Self::D4rl => ExpertFile::D4rl(Maze::Large),
            Self::Clean => ExpertFile::Clean,
        }
    }
}

/// Of hips, of ankles.
#[derive(Clone, Copy)]
struct Gain([f32; 2]);

fn gain(text: &str) -> Result<Gain, String> {
    let numbers = two_numbers::<f32>(text).filter(|numbers| numbers.iter().all(|&x| x > 0.0));
    numbers.map(Gain).ok_or_else(|| "expected two numbers above 0, such as 9,1.7".to_owned())
}

fn deviations(text: &str) -> Result<Actions, String> {
    let bounds = two_numbers(text).filter(|&[low, high]| 0.0 < low && low <= high && high <= 10.0);
    bounds
        .map(|[low, high]| Actions::Squashed { low, high })
        .ok_or_else(|| "expected two numbers, such as 0.2,0.45, above 0 and rising".to_owned())
}

/// Steps, from and to.
#[derive(Clone, Copy)]
struct Hold([u32; 2]);

fn hold(text: &str) -> Result<Hold, String> {
    let steps = two_numbers(text).filter(|&[fewest, most]| 0 < fewest && fewest <= most);
    steps.map(Hold).ok_or_else(|| "expected two rising numbers of steps, such as 10,99".to_owned())
}

fn two_numbers<N: FromStr>(text: &str) -> Option<[N; 2]> {
    let (first, second) = text.split_once(',')?;
    Some([first.trim().parse().ok()?, second.trim().parse().ok()?])
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
    let EvaluateArguments { recipe, cells, noise, episodes, seed, .. } = *arguments;
    let expert = arguments.expert.clone().map(ExpertFile::File);
    let settings = EvaluateSettings { recipe, expert, cells, noise, episodes, seed };
    let evaluator = Evaluator::new(settings)?;
    println!("recipe {recipe}, cells by {cells}, noise {noise}, {episodes} episodes");
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
        Some("shipped") => arguments.recipe.shipped(),
        _ => ExpertFile::File(path),
    });
    let folder = arguments.out.clone();
    let preset = match arguments.recipe {
        ExpertRecipe::D4rl => TrainSettings::d4rl(folder),
        ExpertRecipe::Clean => TrainSettings::clean(folder),
    };
    let rules = Rules {
        standing: arguments.standing.unwrap_or(preset.rules.standing),
        effort: arguments.effort.unwrap_or(preset.rules.effort),
        falls_end: arguments.falls_end.unwrap_or(preset.rules.falls_end),
        longest: arguments.longest.unwrap_or(preset.rules.longest),
        hold: arguments.hold.map_or(preset.rules.hold, |Hold(hold)| hold),
        reach: arguments.reach.unwrap_or(preset.rules.reach),
        spread: arguments.spread.unwrap_or(preset.rules.spread),
        paid_to_goal: arguments.paid_to_goal,
    };
    let settings = TrainSettings {
        maze,
        steps,
        from,
        mirrored: arguments.mirrored,
        ants,
        seed,
        threads,
        rules,
        actions: arguments.deviations.unwrap_or(preset.actions),
        gain: arguments.gain.map_or(preset.gain, |Gain(gain)| gain),
        entropy: arguments.entropy.unwrap_or(preset.entropy),
        discount: arguments.discount.unwrap_or(preset.discount),
        keep_every: arguments.keep_every,
        ..preset
    };
    let bars = Bars::new();
    let expert = cm_data::expert::train(&settings, &|event| bars.show(event))?;
    drop(bars);
    println!("{}", expert.display());
    Ok(())
}
