//! Commands that other programs of this workspace carry out: `cm`, built for speed, or an example.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

use anyhow::Context;

/// What is passed on as it was typed, `--help` included.
#[derive(clap::Args)]
pub(crate) struct Passed {
    /// Commands and options, as the other program takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

#[cfg(test)]
impl Passed {
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

/// Builds `cm` and calls its command `name`.
pub(crate) fn run(name: &str, passed: &Passed) -> anyhow::Result<ExitCode> {
    cargo_run(&["-p", "cm-cli", "--bin", "cm"], [name].iter().map(OsStr::new), passed)
}

/// Builds and calls the examples that compare learned distances with exact ones, of tabular
/// processes (its figures go to `target/verify` unless `--out` says otherwise) and of continuous
/// worlds.
pub(crate) fn verify(passed: &Passed) -> anyhow::Result<ExitCode> {
    let names_folder = |argument: &OsString| {
        let text = argument.to_string_lossy();
        text == "--out" || text.starts_with("--out=")
    };
    let folder: &[&str] = match passed.arguments.iter().any(names_folder) {
        true => &[],
        false => &["--out", "target/verify"],
    };
    let example = ["-p", "cm-learner-tests", "--example", "learned_against_exact"];
    let tabular = cargo_run(&example, folder.iter().map(OsStr::new), passed)?;
    let helps = passed.arguments.iter().any(|argument| argument == "--help" || argument == "-h");
    if tabular != ExitCode::SUCCESS || helps {
        return Ok(tabular);
    }
    let nothing = Passed { arguments: Vec::new() };
    cargo_run(&["-p", "cm-train", "--example", "walks"], std::iter::empty(), &nothing)
}

/// The program that cargo finds by `target`, with `first` and what was passed. What it says and how
/// it exits is all there is to say.
fn cargo_run<'a>(
    target: &[&str],
    first: impl Iterator<Item = &'a OsStr>,
    passed: &Passed,
) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--release", "--locked"])
        .args(target)
        .arg("--")
        .args(first)
        .args(&passed.arguments)
        .status()
        .context("could not start cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
