//! `cargo xtask test`: the checks a change must pass, cheapest first, stopping at the first
//! failure.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo xtask test\n  cargo xtask test --only clippy")]
pub(crate) struct Arguments {
    /// Run this check alone (see the names a whole run prints).
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(CHECKS.map(|check| check.name)))]
    only: Option<String>,
}

struct Check {
    name: &'static str,
    /// Each of these, as arguments of cargo.
    commands: &'static [&'static [&'static str]],
    environment: &'static [(&'static str, &'static str)],
}

const CHECKS: [Check; 5] = [
    Check { name: "format", commands: &[&["fmt", "--all", "--check"]], environment: &[] },
    Check {
        name: "clippy",
        commands: &[&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]],
        environment: &[],
    },
    Check { name: "features", commands: &FEATURES, environment: &[] },
    Check {
        name: "documentation",
        commands: &[&["doc", "--workspace", "--no-deps", "--locked"]],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    // Unit, integration and documentation tests, and every example built. Property tests draw the
    // same cases every time here; a plain `cargo test` draws others, and finds what these miss.
    Check {
        name: "tests",
        commands: &[&["test", "--workspace", "--locked"]],
        environment: &[("PROPTEST_RNG_SEED", "0")],
    },
];

/// `cargo clippy` of one crate with these features and no others.
macro_rules! with_features {
    ($package:literal, $features:literal) => {
        &[
            "clippy",
            "--locked",
            "--package",
            $package,
            "--no-default-features",
            "--features",
            $features,
            "--",
            "-D",
            "warnings",
        ]
    };
}

/// No features, and each by itself; all together are what the others check.
const FEATURES: [&[&str]; 11] = [
    with_features!("cm-quasimetric", ""),
    with_features!("cm-replay", ""),
    with_features!("cm-replay", "hdf5"),
    with_features!("cm-replay", "npz"),
    with_features!("cm-replay", "csv"),
    &[
        "test",
        "--profile",
        "xtask",
        "--locked",
        "--package",
        "cm-replay",
        "--no-default-features",
        "--test",
        "features",
    ],
    with_features!("cm-envs", ""),
    with_features!("cm-envs", "tabular"),
    with_features!("cm-envs", "mujoco"),
    with_features!("cm-envs", "pictures"),
    with_features!("cm-train", ""),
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let selected = CHECKS
        .iter()
        .filter(|check| arguments.only.as_deref().is_none_or(|only| only == check.name));
    for check in selected {
        let start = Instant::now();
        for command in check.commands {
            let line = command.join(" ");
            println!("==> {}: cargo {line}", check.name);
            // What the caller has set holds.
            let environment = check.environment.iter().copied();
            let environment = environment.filter(|(name, _)| std::env::var_os(name).is_none());
            let status =
                Command::new(&cargo).args(*command).envs(environment).status().with_context(
                    || format!("could not start cargo for the check `{}`", check.name),
                )?;
            if !status.success() {
                bail!("the check `{}` failed: cargo {line}", check.name);
            }
        }
        println!("    {} passed in {:.1} s", check.name, start.elapsed().as_secs_f64());
    }
    Ok(())
}
