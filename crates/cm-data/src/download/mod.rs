//! Downloads that survive broken connections, dead mirrors and wrong files.

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;
mod transfer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::transfer::{Failure, Whole};
use crate::checksum::sha256_of_file;
use crate::output::{self, Turn};
use crate::{Cache, Checksum, Error, FileEntry, Progress, Result};

/// How stubborn a download is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownloadSettings {
    /// Attempts in a row without a single new byte before an address is given up.
    pub attempts: u32,
    /// The pause after the first such attempt; it doubles with each.
    pub pause: Duration,
    /// How long a server may be silent.
    pub patience: Duration,
    /// Whether to honour the usual environment variables for proxies.
    pub use_proxy: bool,
}

impl Default for DownloadSettings {
    fn default() -> Self {
        let (pause, patience) = (Duration::from_secs(1), Duration::from_secs(30));
        Self { attempts: 5, pause, patience, use_proxy: true }
    }
}

/// A file in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Where it is.
    pub path: PathBuf,
    /// What it was checked by, before this download; `None` if it was there already.
    pub checked_by: Option<Checksum>,
}

/// Brings `file` into the cache: tries its addresses in turn, resumes an earlier download, and
/// gives the file its name only once its checksum is right. Of several processes one downloads, the
/// others wait.
pub fn download(
    file: &FileEntry,
    cache: &Cache,
    settings: &DownloadSettings,
    progress: Progress<'_>,
) -> Result<Downloaded> {
    let path = cache.path(&file.name);
    if path.exists() {
        return Ok(Downloaded { path, checked_by: None });
    }
    output::make_folder(cache.folder())?;
    let Some(_turn) = Turn::to_make(&path, progress, || Ok(path.exists()))? else {
        return Ok(Downloaded { path, checked_by: None });
    };
    let expected = cache.checksum(file)?;
    let mut failures = Vec::new();
    let mut reached_any = false;
    for address in &file.addresses {
        match from_address(address, file, cache, &expected, settings, progress)? {
            Outcome::Complete => return Ok(Downloaded { path, checked_by: Some(expected) }),
            Outcome::Failed { reason, reached } => {
                reached_any |= reached;
                failures.push(format!("  {address}: {reason}"));
            }
        }
    }
    Err(Error::Download { name: file.name.clone(), network_down: !reached_any, failures })
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
    expected: &Checksum,
    settings: &DownloadSettings,
    progress: Progress<'_>,
) -> Result<Outcome> {
    let agent = transfer::agent(settings.patience, settings.use_proxy);
    let mut fruitless = 0;
    let mut reached_before = false;
    loop {
        match transfer::attempt(&agent, address, file, cache, expected, progress) {
            Ok(whole) => match settle(file, cache, expected, progress)? {
                // The earlier part may be what was wrong.
                Outcome::Failed { .. } if whole == Whole::Continued => {}
                outcome => return Ok(outcome),
            },
            Err(Failure::Local(cause)) => {
                return Err(Error::file("save", &cache.partial(&file.name))(cause));
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
fn settle(
    file: &FileEntry,
    cache: &Cache,
    expected: &Checksum,
    progress: Progress<'_>,
) -> Result<Outcome> {
    let partial = cache.partial(&file.name);
    let found = sha256_of_file(&partial, progress)?;
    match expected.digits() {
        Some(expected) if expected != found => {
            remove(&partial)?;
            let reason = format!("sha256 is {found}, expected {expected}");
            return Ok(Outcome::Failed { reason, reached: true });
        }
        Some(_) => {}
        None => cache.record_checksum(&file.name, &found)?,
    }
    cm_files::publish(&partial, cache.path(&file.name))?;
    remove(&cache.origin(&file.name))?;
    Ok(Outcome::Complete)
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}
