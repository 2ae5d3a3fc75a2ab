//! `cargo xtask test`: the checks a change must pass, cheapest first, stopping at the first failure.

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
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const CHECKS: [Check; 4] = [
    Check { name: "format", arguments: &["fmt", "--all", "--check"], environment: &[] },
    Check {
        name: "clippy",
        arguments: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        environment: &[],
    },
    Check {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    // Unit, integration and documentation tests, and every example built. Property tests draw the
    // same cases every time here; a plain `cargo test` draws others, and finds what these miss.
    Check {
        name: "tests",
        arguments: &["test", "--workspace", "--locked"],
        environment: &[("PROPTEST_RNG_SEED", "0")],
    },
];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let selected = CHECKS
        .iter()
        .filter(|check| arguments.only.as_deref().is_none_or(|only| only == check.name));
    for check in selected {
        println!("==> {}: cargo {}", check.name, check.arguments.join(" "));
        let start = Instant::now();
        // What the caller has set holds.
        let environment =
            check.environment.iter().filter(|(name, _)| std::env::var_os(name).is_none()).copied();
        let status = Command::new(&cargo)
            .args(check.arguments)
            .envs(environment)
            .status()
            .with_context(|| format!("could not start cargo for the check `{}`", check.name))?;
        if !status.success() {
            bail!("the check `{}` failed: cargo {}", check.name, check.arguments.join(" "));
        }
        println!("    {} passed in {:.1} s", check.name, start.elapsed().as_secs_f64());
    }
    Ok(())
}
