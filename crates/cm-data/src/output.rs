//! Folders for what is written, and whose turn it is to write.

use std::fs::{File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::progress::Stage;
use crate::{Error, Progress, Result};

/// Makes the folder that `path` will be in.
pub(crate) fn make_parent(path: &Path) -> Result<()> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => make_folder(folder),
        None => Ok(()),
    }
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::file("create", folder))
}

/// Whether generated data is being made, or was cut off: its parts are there and its description is
/// not.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("antmaze-umaze-v2-generated.cmdata");
/// std::fs::create_dir(file.with_extension("parts"))?;
/// assert!(cm_data::is_unfinished(&file));
/// std::fs::write(file.with_extension("toml"), "")?;
/// assert!(!cm_data::is_unfinished(&file));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_unfinished(output: &Path) -> bool {
    let beside = |extension| output.with_extension(extension).exists();
    beside("parts") && !beside("toml")
}

/// Keeps other processes from making the same file until it is dropped.
pub(crate) struct Turn {
    /// Locked.
    _file: File,
    path: PathBuf,
}

impl Turn {
    /// The turn to make `output`; nothing if it is made, by another process that was waited for
    /// perhaps.
    pub(crate) fn to_make(
        output: &Path,
        progress: Progress<'_>,
        is_made: impl Fn() -> Result<bool>,
    ) -> Result<Option<Self>> {
        if is_made()? {
            return Ok(None);
        }
        let turn = Self::wait(output, progress)?;
        Ok(if is_made()? { None } else { Some(turn) })
    }

    /// Waits while another process is making `output`, and says so.
    fn wait(output: &Path, progress: Progress<'_>) -> Result<Self> {
        let path = lock_of(output);
        loop {
            let file = File::create(&path).map_err(Error::file("create", &path))?;
            let locked = match file.try_lock() {
                Ok(()) => Ok(()),
                Err(TryLockError::WouldBlock) => {
                    let what = format!("waiting for the process that makes {}", output.display());
                    let _stage = Stage::busy(progress, &what);
                    file.lock()
                }
                Err(TryLockError::Error(error)) => Err(error),
            };
            match locked {
                // The one before has removed it, and another may have made it anew.
                Ok(()) if !is_at(&file, &path) => {}
                // Some network drives have no locks: there the user has to take care.
                Err(error) if error.kind() != ErrorKind::Unsupported => {
                    return Err(Error::file("lock", &path)(error));
                }
                _ => return Ok(Self { _file: file, path }),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // One that stays is in nobody's way.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The whole name and an ending: `walks.npz` and the `walks.cmdata` that is made of it have one each.
fn lock_of(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    output.with_file_name(name)
}

/// Whether `file` is what is found at `path` now.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(of_file), Ok(found)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    same(&of_file, &found)
}

#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere a file that is open is not made anew under its name.
#[cfg(not(unix))]
fn same(_one: &Metadata, _other: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::{Event, silent};

    #[test]
    fn a_file_is_made_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("walks.cmdata");
        let first = Turn::wait(&output, &silent).unwrap();
        let (say, hear) = channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let progress = |event: Event<'_>| {
                    if let Event::Busy { what } = event {
                        say.send(what.to_owned()).unwrap();
                    }
                };
                Turn::to_make(&output, &progress, || Ok(output.exists())).unwrap()
            });
            let waits = hear.recv().unwrap();
            assert!(waits.ends_with("walks.cmdata") && !second.is_finished(), "{waits}");
            std::fs::write(&output, "walks").unwrap();
            drop(first);
            assert!(second.join().unwrap().is_none());
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // Whoever failed leaves its turn to the next, and nothing else.
        std::fs::remove_file(&output).unwrap();
        let turn = || Turn::to_make(&output, &silent, || Ok(output.exists())).unwrap();
        drop(turn().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(turn().unwrap());
    }

    #[test]
    fn never_two_at_once_whoever_comes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("walks.cmdata");
        let makers = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let turn = Turn::wait(&output, &silent).unwrap();
                        assert_eq!(makers.fetch_add(1, Ordering::SeqCst), 0);
                        makers.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
