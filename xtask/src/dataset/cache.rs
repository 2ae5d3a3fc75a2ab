//! Where downloads live, and the checksums recorded beside them.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::manifest::{self, FileEntry, RECORD};

/// The folder of downloads: `CM_DATA_DIR`, or the git-ignored `datasets/cache` of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// What a file's checksum must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sha256 {
    /// From the manifest, or recorded by an earlier download.
    Known(String),
    /// Nobody knows; the first download records it.
    RecordOnFirstDownload,
}

impl Cache {
    pub(super) fn from_environment() -> Self {
        match std::env::var_os("CM_DATA_DIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::new(folder),
            None => Self::new(manifest::folder().join("cache")),
        }
    }

    pub(super) fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The unfinished download of a file.
    pub(super) fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.part"))
    }

    /// Which address and version of the file the unfinished download comes from.
    pub(super) fn origin(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.part.origin"))
    }

    pub(super) fn expected_checksum(&self, file: &FileEntry) -> anyhow::Result<Sha256> {
        if file.sha256 != RECORD {
            return Ok(Sha256::Known(file.sha256.to_lowercase()));
        }
        let path = self.record(&file.name);
        match std::fs::read_to_string(&path) {
            Ok(sum) => Ok(Sha256::Known(sum.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Sha256::RecordOnFirstDownload)
            }
            Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
        }
    }

    /// Remembers the checksum of a file downloaded for the first time.
    pub(super) fn record_checksum(&self, name: &str, sum: &str) -> anyhow::Result<()> {
        let path = self.record(name);
        Ok(cm_files::replace(path, format!("{sum}\n"))?)
    }

    fn record(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sha256"))
    }
}
