//! `cargo xtask expert`: the policy that walks where the data sets of AntMaze are generated.

mod evaluate;
mod policy;
mod train;

use clap::{Args, Subcommand};

pub(crate) use policy::Expert;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send an expert through the mazes by the protocol of the evaluation, and say how often it arrives.
    #[command(
        after_help = "Examples:\n  cargo xtask expert evaluate\n  cargo xtask expert evaluate umaze --cells round --out figures"
    )]
    Evaluate(evaluate::Arguments),
    /// Train an expert from scratch by proximal policy optimisation, going on where an earlier training was cut off.
    #[command(
        after_help = "Examples:\n  cargo xtask expert train --out runs/floor\n  cargo xtask expert train --out runs/large --maze large --from runs/floor/expert.safetensors"
    )]
    Train(train::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Evaluate(arguments) => evaluate::run(arguments),
        Command::Train(arguments) => train::run(arguments),
    }
}
