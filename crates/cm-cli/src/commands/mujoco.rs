//! `cm mujoco`: gets the simulator that AntMaze runs on.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::bars::Bars;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install MuJoCo's library from the Python package `mujoco` by way of pip.
    ///
    /// It goes where `cm` looks for it: into CM_DATA_DIR, or `datasets/cache` of the checkout one
    /// stands in, or the user's folder for data.
    #[command(after_help = "Examples:\n  cm mujoco install\n  \
            cm mujoco install --wheel mujoco-3.17.0-cp312-cp312-manylinux_2_28_x86_64.whl")]
    Install {
        /// Take the library from this wheel, for machines that pip cannot reach a package index
        /// from.
        #[arg(long, value_name = "FILE")]
        wheel: Option<PathBuf>,
    },
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Command::Install { wheel } = &arguments.command;
    let bars = Bars::new();
    let installed = cm_data::mujoco::install(wheel.as_deref(), &|event| bars.show(event))?;
    drop(bars);
    let path = installed.path.display();
    if installed.was_there {
        println!("{path} is there already");
    } else {
        println!("installed MuJoCo {}: {path}", installed.version);
    }
    Ok(())
}
