//! The command `cm`: how far apart two states are in time, learned from trajectories.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bars;
mod commands;
mod config;
mod figures;
mod interrupt;
mod page;
mod progress;
mod states;
mod view;
mod words;

/// Learn how far apart states are in time, and act on it.
#[derive(Parser)]
#[command(
    name = "cm",
    version,
    after_help = "Examples:\n  \
        cm train --data walks.csv --name walks\n  \
        cm distance runs/walks --from 0,0 --to 3,4\n  \
        cm check runs/walks\n  \
        cm plan runs/walks --from 0,0 --to 3,4 --figure plan.png\n  \
        cm reproduce pointmaze\n  \
        cm data list"
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
    /// A path from one state to another, printed and drawn.
    Plan(commands::plan::Arguments),
    /// Whether a learned distance is any good, by trajectories that were held out.
    Check(commands::check::Arguments),
    /// A page about one or several runs, served to this machine alone.
    View(commands::view::Arguments),
    /// Train many runs from one plan, here or on a Slurm cluster.
    Sweep(commands::sweep::Arguments),
    /// Curves of losses and success of one or several runs.
    Plot(commands::plot::Arguments),
    /// What is in a run, a checkpoint, a model or a data set.
    Inspect(commands::inspect::Arguments),
    /// Reproduce an experiment of the paper.
    Reproduce(commands::reproduce::Arguments),
    /// List, download, generate, verify, convert and summarise data sets.
    Data(commands::data::Arguments),
    /// Get MuJoCo, which AntMaze runs on.
    Mujoco(commands::mujoco::Arguments),
    /// Train or evaluate the walking policy that AntMaze's data is generated with.
    Expert(commands::expert::Arguments),
    /// Print a completion script for a shell.
    Completions(commands::completions::Arguments),
}

fn main() -> ExitCode {
    end_quietly_without_a_reader();
    let outcome = match Arguments::parse().command {
        Command::Train(arguments) => commands::train::run(arguments),
        Command::Eval(arguments) => commands::eval::run(&arguments),
        Command::Distance(arguments) => commands::distance::run(&arguments),
        Command::Plan(arguments) => commands::plan::run(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::View(arguments) => commands::view::run(arguments),
        Command::Sweep(arguments) => commands::sweep::run(arguments),
        Command::Plot(arguments) => commands::plot::run(&arguments),
        Command::Inspect(arguments) => commands::inspect::run(&arguments),
        Command::Reproduce(arguments) => commands::reproduce::run(arguments),
        Command::Data(arguments) => commands::data::run(arguments),
        Command::Mujoco(arguments) => commands::mujoco::run(&arguments),
        Command::Expert(arguments) => commands::expert::run(&arguments),
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

/// `cm data list | head` has no error to report: its reader has seen enough.
fn end_quietly_without_a_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if message.starts_with("failed printing to stdout") && message.contains("Broken pipe") {
            std::process::exit(141); // as if by SIGPIPE
        }
        usual(panic);
    }));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_well_formed_and_shows_examples_that_parse() {
        Arguments::command().debug_assert();
        fn check(command: &clap::Command) {
            if command.get_subcommands().next().is_none() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                let lines: Vec<_> =
                    help.lines().filter(|line| line.trim_start().starts_with("cm ")).collect();
                assert!(!lines.is_empty(), "{}", command.get_name());
                for line in lines {
                    // What follows is the shell's.
                    let words = line.split_whitespace().take_while(|word| *word != ">");
                    let parsed = Arguments::try_parse_from(words);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
                }
            }
            command.get_subcommands().for_each(check);
        }
        Arguments::command().get_subcommands().for_each(check);
        for line in ["cm expert train --maze moon", "cm data generate antmaze-tiny"] {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
