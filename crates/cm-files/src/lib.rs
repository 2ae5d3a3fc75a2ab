#![doc = include_str!("../README.md")]

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("could not write {}: {cause}", path.display())]
pub struct Error {
    /// The file that was to be replaced.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

/// Replaces the file at `path` by one that holds `content`.
pub fn replace(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let path = path.as_ref();
    replace_with(path, |partial| {
        File::create(partial)
            .and_then(|mut file| file.write_all(content.as_ref()))
            .map_err(failed(path))
    })
}

/// Replaces the file at `path` by the one that `write` makes at the path it is given.
///
/// A partial file of an earlier attempt may lie there; `write` must overwrite it, as
/// [`File::create`] does. If `write` fails or panics, what it wrote is removed.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("copy.txt");
/// # let original = folder.path().join("original.txt");
/// # std::fs::write(&original, "abc").unwrap();
/// cm_files::replace_with(&path, |partial| -> Result<(), Box<dyn std::error::Error>> {
///     std::fs::copy(&original, partial)?;
///     Ok(())
/// })?;
/// assert_eq!(std::fs::read(&path)?, b"abc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_with<E: From<Error>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.as_ref();
    let partial = Partial::beside(path)?;
    write(&partial.0)?;
    publish(&partial.0, path)?;
    Ok(())
}

/// Gives the finished file at `partial` the name `path`, in the same folder.
///
/// On failure the file stays at `partial`: it is the caller's to try again with, or to remove.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let (part, path) = (folder.path().join("data.part"), folder.path().join("data"));
/// std::fs::write(&part, "all of it").unwrap();
/// cm_files::publish(&part, &path)?;
/// assert!(path.exists() && !part.exists());
/// # Ok::<(), cm_files::Error>(())
/// ```
pub fn publish(partial: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<(), Error> {
    let (partial, path) = (partial.as_ref(), path.as_ref());
    // Content first: a name that is on the disk before its content would be a file cut short.
    OpenOptions::new()
        .write(true) // without which Windows does not flush
        .open(partial)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(partial, path))
        .map_err(failed(path))?;
    // The new name is there; whether it outlives a power cut is up to the folder. Some systems
    // cannot flush folders, and there is nothing more to be done there.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// A file of no use once it goes out of scope: it has its name by then, or nobody wants it.
struct Partial(PathBuf);

impl Partial {
    fn beside(path: &Path) -> Result<Self, Error> {
        let Some(name) = path.file_name() else {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, "expected the name of a file");
            return Err(failed(path)(cause));
        };
        let mut name = name.to_owned();
        name.push(".partial");
        Ok(Self(path.with_file_name(name)))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |cause| Error { path: path.to_owned(), cause }
}
