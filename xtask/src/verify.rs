//! `cargo xtask verify`: what the methods learn against what is known exactly.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo xtask verify --out figures")]
pub(crate) struct Arguments {
    /// Folder for the scatter plots.
    #[arg(long, default_value = "target/verify")]
    out: PathBuf,
    /// Seed of trajectories, weights and batches.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let example =
        ["run", "--release", "-p", "cm-learner-tests", "--example", "learned_against_exact"];
    let status = Command::new(cargo)
        .args(example)
        .args(["--locked", "--", "--seed", &arguments.seed.to_string(), "--out"])
        .arg(&arguments.out)
        .status()
        .context("could not start cargo")?;
    if !status.success() {
        bail!("a learned distance is not as close to the exact one as it should be");
    }
    Ok(())
}
