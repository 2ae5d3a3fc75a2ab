//! The command `cm`: how far apart two states are in time, learned from trajectories.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod commands;
mod config;
mod figures;
mod interrupt;
mod page;
mod progress;

/// Learn how far apart states are in time, and act on it.
#[derive(Parser)]
#[command(
    name = "cm",
    version,
    after_help = "Examples:\n  \
        cm train --data walks.csv --name walks\n  \
        cm distance runs/walks --from 0,0 --to 3,4\n  \
        cm plan runs/walks --from 0,0 --to 3,4 --figure plan.png\n  \
        cm reproduce pointmaze"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a method on an environment or on data of your own.
    Train(commands::train::Arguments),
    /// Let a trained policy act and count how often it reaches its goals.
    Eval(commands::eval::Arguments),
    /// The learned distance between states, or a map of it.
    Distance(commands::distance::Arguments),
    /// A greedy path from one state to another, printed and drawn.
    Plan(commands::plan::Arguments),
    /// Curves of losses and success of one or several runs.
    Plot(commands::plot::Arguments),
    /// What is in a run, a checkpoint, a model or a data set.
    Inspect(commands::inspect::Arguments),
    /// Reproduce an experiment of the paper.
    Reproduce(commands::reproduce::Arguments),
    /// Print a completion script for a shell.
    Completions(commands::completions::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Train(arguments) => commands::train::run(arguments),
        Command::Eval(arguments) => commands::eval::run(&arguments),
        Command::Distance(arguments) => commands::distance::run(&arguments),
        Command::Plan(arguments) => commands::plan::run(&arguments),
        Command::Plot(arguments) => commands::plot::run(&arguments),
        Command::Inspect(arguments) => commands::inspect::run(&arguments),
        Command::Reproduce(arguments) => commands::reproduce::run(arguments),
        Command::Completions(arguments) => commands::completions::run::<Arguments>(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
