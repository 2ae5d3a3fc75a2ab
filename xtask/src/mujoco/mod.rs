//! `cargo xtask mujoco`: gets the simulator that AntMaze runs on.

mod install;
mod wheel;

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put MuJoCo's library into the cache (CM_DATA_DIR, or datasets/cache), from the Python package `mujoco` by way of pip.
    #[command(
        after_help = "Examples:\n  cargo xtask mujoco install\n  cargo xtask mujoco install --wheel mujoco-3.17.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    )]
    Install {
        /// Take the library from this wheel, for machines that pip cannot reach a package index from.
        #[arg(long, value_name = "FILE")]
        wheel: Option<PathBuf>,
    },
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Install { wheel } => install::run(wheel.as_deref()),
    }
}
