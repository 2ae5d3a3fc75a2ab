//! `cm reproduce`: experiments of the paper from one command.

mod ant_maze;
mod point_maze;
mod report;
mod study;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(clap::Subcommand)]
enum Experiment {
    /// The 2-D navigation experiment: Figures 2 and 3.
    Pointmaze(point_maze::Arguments),
    /// The table on D4RL's AntMaze.
    Antmaze(ant_maze::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.experiment {
        Experiment::Pointmaze(arguments) => point_maze::run(&arguments),
        Experiment::Antmaze(arguments) => ant_maze::run(&arguments),
    }
}
