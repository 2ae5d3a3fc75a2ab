//! `cm reproduce`: experiments of the paper from one command.

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
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.experiment {
        Experiment::Pointmaze(arguments) => point_maze::run(&arguments),
    }
}
