//! Files that are replaced whole or not at all.

use std::path::Path;

use crate::Error;

/// Writes beside `path` and renames, so that a kill at any moment leaves the old file or the new one.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    let failed = |cause| Error::File { path: path.into(), cause };
    std::fs::write(&beside, bytes).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)
}
