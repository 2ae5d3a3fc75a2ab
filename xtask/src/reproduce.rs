//! `cargo xtask reproduce`: an experiment of the paper by the program `cm`, built for speed.

use std::process::Command;

use anyhow::{Context, bail};

#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  cargo xtask reproduce pointmaze\n  cargo xtask reproduce pointmaze --full\n  cargo xtask reproduce pointmaze --help"
)]
pub(crate) struct Arguments {
    /// The experiment and its options, as `cm reproduce` takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, default_value = "--help")]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--release", "--locked", "-p", "cm-cli", "--bin", "cm", "--", "reproduce"])
        .args(&arguments.arguments)
        .status()
        .context("could not start cargo")?;
    if !status.success() {
        bail!("the reproduction did not finish");
    }
    Ok(())
}
