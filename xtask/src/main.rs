//! `cargo xtask <command>`: everything a contributor or a reader of the paper runs, one file per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod dataset;
mod expert;
mod mujoco;
mod reproduce;
mod test;
mod verify;

/// Tests, data sets, reproductions and benchmarks of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List, download, verify, convert and inspect data sets.
    Dataset(dataset::Arguments),
    /// Reproduce an experiment of the paper: figures, table and a page that shows them.
    Reproduce(reproduce::Arguments),
    /// Train or evaluate the walking policy that data sets are generated with.
    Expert(expert::Arguments),
    /// Get MuJoCo, which AntMaze runs on.
    Mujoco(mujoco::Arguments),
    /// Check format, lints, tests, doc tests and documentation, cheapest first.
    Test(test::Arguments),
    /// Train CMD on processes whose successor distance is known, and compare.
    Verify(verify::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Dataset(arguments) => dataset::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Expert(arguments) => expert::run(&arguments),
        Command::Mujoco(arguments) => mujoco::run(arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_well_formed_and_shows_an_example() {
        Arguments::command().debug_assert();
        fn check(command: &clap::Command) {
            if command.get_subcommands().next().is_none() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "{}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        Arguments::command().get_subcommands().for_each(check);
        for line in [
            "xtask expert train",
            "xtask expert train --maze large --from a.safetensors --steps 1",
            "xtask expert evaluate umaze --cells round",
            "xtask dataset generate antmaze-umaze --d4rl-hdf5",
            "xtask mujoco install --wheel a.whl",
        ] {
            Arguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string()).unwrap();
        }
        assert!(Arguments::try_parse_from(["xtask", "expert", "train", "--maze", "moon"]).is_err());
    }
}
