//! `cargo xtask`: the checks that a change must pass, and fronts that build and call `cm`.

mod cm;
mod slurm;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use cm::Passed;

/// What contributors and readers of this workspace run.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "All but `test` and `slurm` pass their options on; `--help` after a command shows them.\n\n\
        Examples:\n  \
        cargo xtask test\n  \
        cargo xtask reproduce pointmaze\n  \
        cargo xtask slurm up\n  \
        cargo xtask dataset list\n  \
        cargo xtask dataset --help\n  \
        cargo xtask verify --out figures"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check format, lints, tests, doc tests and documentation, cheapest first.
    Test(test::Arguments),
    /// Reproduce an experiment of the paper: figures, table and a page that shows them
    /// (`cm reproduce`).
    #[command(disable_help_flag = true)]
    Reproduce(Passed),
    /// List, download, generate, verify, convert and summarise data sets (`cm data`).
    #[command(disable_help_flag = true)]
    Dataset(Passed),
    /// Get MuJoCo, which AntMaze runs on (`cm mujoco`).
    #[command(disable_help_flag = true)]
    Mujoco(Passed),
    /// Train or evaluate the walking policy that data sets are generated with (`cm expert`).
    #[command(disable_help_flag = true)]
    Expert(Passed),
    /// A Slurm cluster of two nodes on this machine, for tests of sweeps.
    Slurm(slurm::Arguments),
    /// Train CMD on processes whose successor distance is known, and compare.
    #[command(disable_help_flag = true)]
    Verify(Passed),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Reproduce(passed) => cm::run("reproduce", &passed),
        Command::Dataset(passed) => cm::run("data", &passed),
        Command::Mujoco(passed) => cm::run("mujoco", &passed),
        Command::Expert(passed) => cm::run("expert", &passed),
        Command::Slurm(arguments) => slurm::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Verify(passed) => cm::verify(&passed),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_typed_is_passed_on() {
        Arguments::command().debug_assert();
        for line in [
            "xtask dataset",
            "xtask dataset --help",
            "xtask dataset generate antmaze-umaze --d4rl-hdf5",
            "xtask mujoco install --wheel a.whl",
            "xtask expert train --maze large --from a.safetensors --steps 1",
            "xtask reproduce antmaze --help",
            "xtask verify --seed=2 --out figures",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let parsed =
                Arguments::try_parse_from(&words).unwrap_or_else(|e| panic!("{line}: {e}"));
            let (Command::Dataset(passed)
            | Command::Mujoco(passed)
            | Command::Expert(passed)
            | Command::Reproduce(passed)
            | Command::Verify(passed)) = parsed.command
            else {
                panic!("{line}")
            };
            assert_eq!(passed.arguments(), &words[2..], "{line}");
        }
    }
}
