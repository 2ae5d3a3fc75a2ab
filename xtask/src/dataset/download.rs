//! Downloads that survive broken connections, dead mirrors and wrong files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};

use super::cache::{Cache, Sha256};
use super::checksum;
use super::manifest::FileEntry;
use super::transfer::{self, Failure, Whole};

/// How stubborn a download is.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Attempts in a row without a single new byte before an address is given up.
    pub(super) attempts: u32,
    /// The pause after the first such attempt; it doubles with each.
    pub(super) pause: Duration,
    /// How long a server may be silent.
    pub(super) patience: Duration,
    /// Whether to honour the usual environment variables for proxies.
    pub(super) use_proxy: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let (pause, patience) = (Duration::from_secs(1), Duration::from_secs(30));
        Self { attempts: 5, pause, patience, use_proxy: true }
    }
}

/// Brings `file` into the cache: tries its addresses in turn, goes on where an earlier download stopped, and gives the file its name
/// only once its checksum is right.
pub(super) fn download(file: &FileEntry, cache: &Cache, settings: &Settings) -> anyhow::Result<()> {
    let target = cache.path(&file.name);
    if target.exists() {
        println!("{} is there already", target.display());
        return Ok(());
    }
    std::fs::create_dir_all(cache.folder())
        .with_context(|| format!("could not create {}", cache.folder().display()))?;
    let bar = progress_bar(&file.name);
    let mut failures = Vec::new();
    let mut reached_any = false;
    for address in &file.addresses {
        let outcome = from_address(address, file, cache, settings, &bar)?;
        match outcome {
            Outcome::Complete => {
                bar.finish_and_clear();
                println!("downloaded {}", target.display());
                return Ok(());
            }
            Outcome::Failed { reason, reached } => {
                reached_any |= reached;
                failures.push(format!("  {address}: {reason}"));
            }
        }
    }
    bar.finish_and_clear();
    let failures = failures.join("\n");
    if !reached_any {
        bail!(
            "could not reach any server for {}: the network seems to be down\n{failures}",
            file.name
        );
    }
    bail!("could not download {}\n{failures}", file.name)
}

enum Outcome {
    Complete,
    Failed { reason: String, reached: bool },
}

/// Attempts until the file is complete, the address refuses, or nothing has come for too long.
fn from_address(
    address: &str,
    file: &FileEntry,
    cache: &Cache,
    settings: &Settings,
    bar: &ProgressBar,
) -> anyhow::Result<Outcome> {
    let agent = transfer::agent(settings.patience, settings.use_proxy);
    let expected = cache.expected_checksum(file)?;
    let mut fruitless = 0;
    let mut reached_before = false;
    loop {
        match transfer::attempt(&agent, address, file, cache, &expected, bar) {
            Ok(whole) => match settle(file, cache, &expected)? {
                // The earlier part may be what was wrong.
                Outcome::Failed { .. } if whole == Whole::Continued => {}
                outcome => return Ok(outcome),
            },
            Err(Failure::Local(error)) => {
                return Err(error.context(format!("could not save {}", file.name)));
            }
            Err(Failure::Refused(reason)) => {
                return Ok(Outcome::Failed { reason, reached: true });
            }
            Err(Failure::Interrupted { reason, received, reached }) => {
                reached_before |= reached;
                fruitless = if received > 0 { 0 } else { fruitless + 1 };
                if fruitless >= settings.attempts {
                    let reason = format!("{reason} ({fruitless} attempts)");
                    return Ok(Outcome::Failed { reason, reached: reached_before });
                }
                let doublings = fruitless.saturating_sub(1).min(6);
                std::thread::sleep(settings.pause * 2_u32.pow(doublings));
            }
        }
    }
}

/// Checks the complete partial file and gives it its name, or deletes it.
fn settle(file: &FileEntry, cache: &Cache, expected: &Sha256) -> anyhow::Result<Outcome> {
    let partial = cache.partial(&file.name);
    let found = checksum::of_file(&partial)?;
    match expected {
        Sha256::Known(expected) if *expected != found => {
            remove(&partial)?;
            let reason = format!("sha256 is {found}, expected {expected}");
            return Ok(Outcome::Failed { reason, reached: true });
        }
        Sha256::Known(_) => {}
        Sha256::RecordOnFirstDownload => cache.record_checksum(&file.name, &found)?,
    }
    let target = cache.path(&file.name);
    cm_files::publish(&partial, &target)?;
    remove(&cache.origin(&file.name))?;
    Ok(Outcome::Complete)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Shown on a terminal, silent elsewhere.
fn progress_bar(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_message(name.to_owned())
}

#[cfg(test)]
#[path = "download_tests.rs"]
mod tests;
