//! `cm data generate`: AntMaze data by D4RL's recipe.

use std::path::PathBuf;

use cm_data::expert::ExpertFile;
use cm_data::{Cache, GenerateSettings, Generated, generated_file};
use cm_envs::ant_maze::{CellRule, Guide, Task};

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
    /// How the cell of a place is found: floor (D4RL's rule) or round.
    #[arg(long, default_value = "floor")]
    cells: CellRule,
    /// Standard deviation of the noise on actions.
    #[arg(long, default_value_t = Guide::NOISE)]
    noise: f32,
    /// Threads to use; 0 for all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// The walking policy; the one that is shipped if not given.
    #[arg(long, value_name = "FILE")]
    expert: Option<PathBuf>,
    /// The file to write; unless given, the name of the task and `-generated.cmdata`, where
    /// downloads go.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the data in D4RL's HDF5 layout too, beside the other file.
    #[arg(long)]
    d4rl_hdf5: bool,
}

pub(super) fn run(arguments: &Arguments, cache: &Cache) -> anyhow::Result<()> {
    let Arguments { task, seed, transitions, cells, noise, threads, d4rl_hdf5, .. } = *arguments;
    let expert = arguments.expert.clone().map_or(ExpertFile::Shipped, ExpertFile::File);
    let settings =
        GenerateSettings { task, seed, transitions, cells, noise, expert, threads, d4rl_hdf5 };
    let output = arguments.out.clone().unwrap_or_else(|| generated_file(task, cache));
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
