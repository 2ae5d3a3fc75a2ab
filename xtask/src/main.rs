//! `cargo xtask <command>`: everything a contributor or a reader of the paper runs, one file per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod dataset;
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
    /// Check format, lints, tests, doc tests and documentation, cheapest first.
    Test(test::Arguments),
    /// Train CMD on processes whose successor distance is known, and compare.
    Verify(verify::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Dataset(arguments) => dataset::run(arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
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
