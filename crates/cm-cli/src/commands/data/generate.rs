//! `cm data generate`: AntMaze data by D4RL's recipe, and data of OGBench's mazes by OGBench's.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use cm_data::expert::ExpertFile;
use cm_data::{
    Cache, GenerateSettings, Generated, OgGenerated, OgSettings, generated_name, og_generated_name,
};
use cm_envs::ant_maze::{CellRule, Recipe, Task};
use cm_envs::ogbench::OgTask;

use crate::bars::Bars;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A task, such as antmaze-umaze, antmaze-large-diverse-v2 or pointmaze-medium-navigate-v0.
    task: AnyTask,
    /// The same seed gives the same data, on any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads to use; 0 for all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// The walking policy; the one that is shipped for the recipe if not given.
    #[arg(long, value_name = "FILE")]
    expert: Option<PathBuf>,
    /// The file to write; unless given, the name of the task and `-generated.cmdata`, or
    /// `-generated-RECIPE.cmdata` for another recipe than d4rl, where downloads go.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// D4RL's tasks: rows of the data set; 1,000,000 if not given.
    #[arg(long)]
    transitions: Option<usize>,
    /// D4RL's tasks: by which numbers: d4rl (as D4RL's files show them; the default), d4rl-code (as
    /// the code in its repository does) or clean (little noise; most episodes arrive).
    #[arg(long)]
    recipe: Option<Recipe>,
    /// D4RL's tasks: how the cell of a place is found: floor (D4RL's rule; the default) or round.
    #[arg(long)]
    cells: Option<CellRule>,
    /// D4RL's tasks: standard deviation of the noise on actions; 0.2 if not given.
    #[arg(long)]
    noise: Option<f32>,
    /// D4RL's tasks: write the data in D4RL's HDF5 layout too, beside the other file.
    #[arg(long)]
    d4rl_hdf5: bool,
    /// OGBench's tasks: episodes to train on; as many as OGBench has if not given. A tenth as many
    /// more are for validation, in a file beside.
    #[arg(long)]
    episodes: Option<usize>,
    /// OGBench's tasks: write OGBench's npz files too, beside the others.
    #[arg(long)]
    npz: bool,
}

/// A task of either collection.
#[derive(Clone, Copy, Debug)]
enum AnyTask {
    D4rl(Task),
    Ogbench(OgTask),
}

impl FromStr for AnyTask {
    type Err = cm_envs::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(task) = text.parse() {
            return Ok(Self::Ogbench(task));
        }
        text.parse().map(Self::D4rl).map_err(|_| {
            let ogbench = OgTask::all().into_iter().map(OgTask::name);
            let all = Task::ALL.map(|task| task.name().to_owned()).into_iter().chain(ogbench);
            let known = all.collect::<Vec<_>>().join(", ");
            cm_envs::Error::UnknownTask { found: text.to_owned(), known }
        })
    }
}

impl fmt::Display for AnyTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::D4rl(task) => task.fmt(formatter),
            Self::Ogbench(task) => task.fmt(formatter),
        }
    }
}

pub(super) fn run(arguments: &Arguments, cache: &Cache) -> anyhow::Result<()> {
    match arguments.task {
        AnyTask::D4rl(task) => d4rl(arguments, task, cache),
        AnyTask::Ogbench(task) => ogbench(arguments, task, cache),
    }
    .with_context(|| format!("{}", arguments.task))
}

fn d4rl(arguments: &Arguments, task: Task, cache: &Cache) -> anyhow::Result<()> {
    if arguments.episodes.is_some() || arguments.npz {
        bail!("--episodes and --npz are of OGBench's tasks; expected --transitions, --d4rl-hdf5");
    }
    let usual = GenerateSettings::new(task);
    let settings = GenerateSettings {
        seed: arguments.seed,
        transitions: arguments.transitions.unwrap_or(usual.transitions),
        recipe: arguments.recipe.unwrap_or(usual.recipe),
        cells: arguments.cells.unwrap_or(usual.cells),
        noise: arguments.noise.unwrap_or(usual.noise),
        expert: arguments.expert.clone().map(ExpertFile::File),
        threads: arguments.threads,
        d4rl_hdf5: arguments.d4rl_hdf5,
        ..usual
    };
    let name = generated_name(task, settings.recipe);
    let output = arguments.out.clone().unwrap_or_else(|| cache.path(&name));
    let bars = Bars::new();
    let generated = cm_data::generate(&settings, &output, &|event| bars.show(event))?;
    drop(bars);
    print(&generated);
    Ok(())
}

fn ogbench(arguments: &Arguments, task: OgTask, cache: &Cache) -> anyhow::Result<()> {
    let Arguments { transitions, recipe, cells, noise, d4rl_hdf5, .. } = arguments;
    let others = [transitions.is_some(), recipe.is_some(), cells.is_some(), noise.is_some()];
    if others.contains(&true) || *d4rl_hdf5 {
        bail!(
            "--transitions, --recipe, --cells, --noise and --d4rl-hdf5 are of D4RL's tasks; \
             expected --episodes, --npz"
        );
    }
    let settings = OgSettings {
        seed: arguments.seed,
        episodes: arguments.episodes.unwrap_or(task.episodes()),
        expert: arguments.expert.clone().map(ExpertFile::File),
        threads: arguments.threads,
        npz: arguments.npz,
        ..OgSettings::new(task)
    };
    let output = arguments.out.clone().unwrap_or_else(|| cache.path(&og_generated_name(task)));
    let bars = Bars::new();
    let generated = cm_data::generate_ogbench(&settings, &output, &|event| bars.show(event))?;
    drop(bars);
    print_ogbench(&generated);
    Ok(())
}

/// What there is now.
pub(crate) fn print(generated: &Generated) {
    match &generated.made {
        None => println!("{} is there already", generated.data.display()),
        Some((report, picture)) => {
            println!("{report}\n{}\n{}", generated.data.display(), picture.display());
        }
    }
    if let Some(path) = &generated.d4rl_hdf5 {
        println!("{}", path.display());
    }
}

/// What there is now of OGBench's.
pub(crate) fn print_ogbench(generated: &OgGenerated) {
    let files = [Some(&generated.training), generated.validation.as_ref()];
    for (path, made) in files.into_iter().flatten() {
        match made {
            None => println!("{} is there already", path.display()),
            Some(figures) => println!("{}\n{figures}", path.display()),
        }
    }
    generated.npz.iter().for_each(|path| println!("{}", path.display()));
}
