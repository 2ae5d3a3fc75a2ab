//! Where downloads live, and the checksums recorded beside them.

use std::path::{Path, PathBuf};

use crate::manifest::{FileEntry, RECORD};
use crate::{Error, Result};

/// The folder of downloads, generated data and MuJoCo's library.
///
/// ```
/// let cache = cm_data::Cache::new("/data");
/// assert_eq!(cache.path("walks.npz"), std::path::Path::new("/data/walks.npz"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// What a file's SHA-256 must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The manifest says it: a download is verified.
    Published(String),
    /// Nobody has published it; an earlier download recorded this one.
    Recorded(String),
    /// Nobody has published it; the first download is trusted and recorded.
    Unknown,
}

impl Checksum {
    /// The hexadecimal digits, where there are any.
    pub fn digits(&self) -> Option<&str> {
        match self {
            Self::Published(sum) | Self::Recorded(sum) => Some(sum),
            Self::Unknown => None,
        }
    }
}

impl Cache {
    /// The folder that [`cm_envs::cache_folder`] chooses: `CM_DATA_DIR`, `datasets/cache` of the
    /// checkout one stands in, or the user's folder for data.
    pub fn from_environment() -> Self {
        Self::new(cm_envs::cache_folder())
    }

    /// A folder of one's own choice; it need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a file of that name is or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What the checksum of `file` must be.
    pub fn checksum(&self, file: &FileEntry) -> Result<Checksum> {
        if file.sha256 != RECORD {
            return Ok(Checksum::Published(file.sha256.to_lowercase()));
        }
        let path = self.record(&file.name);
        match std::fs::read_to_string(&path) {
            Ok(sum) => Ok(Checksum::Recorded(sum.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Checksum::Unknown),
            Err(error) => Err(Error::file("read", &path)(error)),
        }
    }

    /// Where people put manifests of their own.
    pub(crate) fn manifests(&self) -> PathBuf {
        self.folder.join("manifests")
    }

    /// The unfinished download of a file.
    pub(crate) fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.part"))
    }

    /// Which address and version of the file the unfinished download comes from.
    pub(crate) fn origin(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.part.origin"))
    }

    /// Remembers the checksum of a file downloaded for the first time.
    pub(crate) fn record_checksum(&self, name: &str, sum: &str) -> Result<()> {
        Ok(cm_files::replace(self.record(name), format!("{sum}\n"))?)
    }

    fn record(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sha256"))
    }
}
