//! `cm reproduce`: experiments of the paper, and OGBench's, from one command. Each has a folder; what they share
//! lies beside them.

mod ant_maze;
mod ogbench;
pub(super) mod output;
mod point_maze;
pub(super) mod results;
mod supply;
mod training;

use cm_train::Device;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
    /// What to train on: `cpu`; `cuda` or `cuda:N`, a GPU; `auto`, a GPU if there is one. Behind the
    /// last three `,highest`, `,tf32` (the default) or `,bf16`: the precision of matrix products.
    #[arg(long, default_value = "cpu", global = true)]
    device: Device,
}

#[derive(clap::Subcommand)]
enum Experiment {
    /// The 2-D navigation experiment: Figures 2 and 3.
    Pointmaze(point_maze::Arguments),
    /// The table on D4RL's AntMaze.
    Antmaze(ant_maze::Arguments),
    /// OGBench's tables on its mazes, and the TMD paper's.
    Ogbench(ogbench::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { experiment, device } = arguments;
    match experiment {
        Experiment::Pointmaze(arguments) => point_maze::run(&arguments, device),
        Experiment::Antmaze(arguments) => ant_maze::run(&arguments, device),
        Experiment::Ogbench(arguments) => ogbench::run(&arguments, device),
    }
}
