//! The one place where a file becomes memory.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("mapped files hold little-endian numbers, which this target cannot use in place");

/// Maps a whole file for reading.
pub(crate) fn map_file(path: &Path) -> Result<Mmap> {
    let file = File::open(path).map_err(Error::io("open the file"))?;
    // SAFETY: the memory is only read, as bytes or as f32, u64, for which every bit pattern is
    // valid. If another process shortened or rewrote the file in place, reads could fault or change
    // under us; `Dataset::open` demands that nobody does, and our own writers replace files by
    // renaming instead.
    unsafe { Mmap::map(&file) }.map_err(Error::io("map the file into memory"))
}
