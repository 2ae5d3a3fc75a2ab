//! Folders for what is written.

use std::path::Path;

use crate::{Error, Result};

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
