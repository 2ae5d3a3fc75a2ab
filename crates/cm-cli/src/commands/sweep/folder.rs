//! What a sweep keeps beside its runs: a lock, what is known of each run, what was submitted.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::mounts;

/// The folder `.sweep` in the folder of all runs.
#[derive(Clone, Debug)]
pub(super) struct SweepFolder {
    path: PathBuf,
}

/// Held while runs are started or trained here; another sweep is refused meanwhile.
#[derive(Debug)]
pub(super) struct SweepLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

/// What is known of a run beside its own folder. Times are here, not there, so that folders can be
/// compared byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Which process or task trains it, or did last: `node1, task 17_3`.
    pub(super) place: String,
    /// When it began there, in seconds since 1970.
    pub(super) started: u64,
    /// At which step it began there.
    pub(super) from: u64,
    pub(super) state: NoteState,
    /// How often it has failed.
    pub(super) failures: u32,
    /// Of the first failure.
    pub(super) error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NoteState {
    #[default]
    Running,
    Stopped,
    Finished,
    Failed,
}

impl SweepFolder {
    pub(super) fn of(out: &Path) -> Self {
        Self { path: out.join(".sweep") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder, and keeps every other sweep from it until what is returned is dropped.
    pub(super) fn lock(&self) -> anyhow::Result<SweepLock> {
        let notes = self.path.join("runs");
        std::fs::create_dir_all(&notes)
            .with_context(|| format!("{}: could not be made", notes.display()))?;
        if let Some(reason) = mounts::only_local_locks(&self.path) {
            bail!(
                "{}: {reason}, so that locks do not reach other machines and two sweeps could write \
                 the same files; choose another folder, or have it mounted without that option",
                self.out().display()
            );
        }
        let path = self.lock_file();
        let options =
            || File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let mut file =
            options().with_context(|| format!("{}: could not be opened", path.display()))?;
        // `status` looks for a moment whether the lock is held.
        for attempt in 0.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < 5 => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(TryLockError::WouldBlock) => bail!(
                    "{}: another sweep is at work in this folder ({}); wait for it, or end it with \
                     `cm sweep cancel`",
                    self.out().display(),
                    holder(&mut file)
                ),
                // Without locks two sweeps could write the same files, so there is none.
                Err(TryLockError::Error(error)) => bail!(
                    "{}: this file system has no locks ({error}); choose a folder on one that has, \
                     such as NFS with its lock service, or a local disk",
                    path.display()
                ),
            }
        }
        let text = format!("process {} on {}", std::process::id(), host());
        let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
        written.with_context(|| format!("{}: could not be written", path.display()))?;
        Ok(SweepLock(file))
    }

    /// Who holds the lock, if anybody does.
    pub(super) fn holder(&self) -> Option<String> {
        let mut file = File::open(self.lock_file()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
            _ => None,
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    fn out(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// While this file is there, whoever trains here stops.
    pub(super) fn cancel_file(&self) -> PathBuf {
        self.path.join("cancel")
    }

    /// What is known of the run; nothing of one that never began.
    pub(super) fn note(&self, run: &str) -> Option<Note> {
        serde_json::from_slice(&std::fs::read(self.note_file(run)).ok()?).ok()
    }

    /// Writes down what is known of the run. Failing to is said, and does not end its training.
    pub(super) fn write_note(&self, run: &str, note: &Note) {
        let written = serde_json::to_vec(note).map_err(anyhow::Error::from).and_then(|text| {
            cm_files::replace(self.note_file(run), text)?;
            Ok(())
        });
        if let Err(error) = written {
            eprintln!("{run}: {error:#}");
        }
    }

    fn note_file(&self, run: &str) -> PathBuf {
        self.path.join("runs").join(format!("{run}.json"))
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.is_empty() => text,
        _ => "a process that is starting".to_owned(),
    }
}

/// The name of this machine.
pub(super) fn host() -> String {
    let named = ["SLURMD_NODENAME", "HOSTNAME"].map(|name| std::env::var(name).ok());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let [node, shell] = named;
    let found = node.or(kernel).or(shell).map(|name| name.trim().to_owned());
    found.filter(|name| !name.is_empty()).unwrap_or_else(|| "this machine".to_owned())
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_sweep_is_refused_and_told_who_is_there() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = SweepFolder::of(scratch.path());
        assert_eq!(folder.holder(), None);
        let lock = folder.lock().unwrap();
        let message = folder.lock().unwrap_err().to_string();
        let process = format!("process {}", std::process::id());
        assert!(message.contains("another sweep") && message.contains(&process), "{message}");
        assert!(folder.holder().unwrap().contains(&process));
        drop(lock);
        assert_eq!(folder.holder(), None);
        folder.lock().unwrap();
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = SweepFolder::of(scratch.path());
        let _lock = folder.lock().unwrap();
        assert_eq!(folder.note("a"), None);
        let error = Some("why".to_owned());
        let note = Note { state: NoteState::Failed, failures: 2, error, ..Default::default() };
        folder.write_note("a", &note);
        assert_eq!(folder.note("a"), Some(note));
    }
}
