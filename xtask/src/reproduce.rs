//! `cargo xtask reproduce`: an experiment of the paper by the program `cm`, built for speed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::dataset;

#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  cargo xtask reproduce pointmaze\n  cargo xtask reproduce pointmaze --full\n  cargo xtask reproduce antmaze --tasks umaze --methods cmd1\n  cargo xtask reproduce pointmaze --help"
)]
pub(crate) struct Arguments {
    /// The experiment and its options, as `cm reproduce` takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, default_value = "--help")]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let asks_for_help = arguments.arguments.iter().any(|argument| argument == "--help");
    if arguments.arguments.first().is_some_and(|experiment| experiment == "antmaze")
        && !asks_for_help
    {
        get_data(&arguments.arguments)?;
    }
    if !cm(&arguments.arguments).status().context("could not start cargo")?.success() {
        bail!("the reproduction did not finish");
    }
    Ok(())
}

/// The data sets that an AntMaze reproduction needs and does not have, downloaded or generated.
fn get_data(arguments: &[String]) -> anyhow::Result<()> {
    let output = cm(arguments).arg("--list-data").output().context("could not start cargo")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let [task, source, file] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        let file = Path::new(file);
        if file.exists() {
            continue;
        }
        println!("getting {task}: {}", file.display());
        match source {
            "generated" => dataset::generate(task, file)?,
            _ => dataset::download_converted(task, file)?,
        }
    }
    Ok(())
}

fn cm(arguments: &[String]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["run", "--release", "--locked", "-p", "cm-cli", "--bin", "cm", "--", "reproduce"])
        .args(arguments);
    command
}
