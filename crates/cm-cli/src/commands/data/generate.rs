//! `cm data generate`: AntMaze data by D4RL's recipe.

use std::path::PathBuf;

use cm_data::expert::ExpertFile;
use cm_data::{Cache, GenerateSettings, Generated, generated_name};
use cm_envs::ant_maze::{CellRule, Guide, Recipe, Task};

use crate::bars::Bars;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A task, such as antmaze-umaze or antmaze-large-diverse-v2.
    task: Task,
    /// The same seed gives the same data, on any number of threads.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Rows of the data set.
    #[arg(long, default_value_t = GenerateSettings::TRANSITIONS)]
    transitions: usize,
    /// By which numbers: d4rl (as D4RL's files show them), d4rl-code (as the code in its
    /// repository does) or clean (little noise; most episodes arrive).
    #[arg(long, default_value_t = Recipe::D4rl)]
    recipe: Recipe,
    /// How the cell of a place is found: floor (D4RL's rule) or round.
    #[arg(long, default_value = "floor")]
    cells: CellRule,
    /// Standard deviation of the noise on actions.
    #[arg(long, default_value_t = Guide::NOISE)]
    noise: f32,
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
    /// Write the data in D4RL's HDF5 layout too, beside the other file.
    #[arg(long)]
    d4rl_hdf5: bool,
}

pub(super) fn run(arguments: &Arguments, cache: &Cache) -> anyhow::Result<()> {
    let Arguments { task, seed, transitions, recipe, cells, noise, threads, d4rl_hdf5, .. } =
        *arguments;
    let settings = GenerateSettings {
        task,
        seed,
        transitions,
        recipe,
        cells,
        noise,
        expert: arguments.expert.clone().map(ExpertFile::File),
        threads,
        d4rl_hdf5,
    };
    let output = arguments.out.clone().unwrap_or_else(|| cache.path(&generated_name(task, recipe)));
    let bars = Bars::new();
    let generated = cm_data::generate(&settings, &output, &|event| bars.show(event))?;
    drop(bars);
    print(&generated);
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
