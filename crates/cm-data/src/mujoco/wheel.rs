//! A Python wheel is a zip archive; MuJoCo's holds the library.

use std::fs::File;
use std::path::Path;

use cm_envs::mujoco::library_file_name;

use crate::{Error, Result};

/// Writes the library inside `wheel` to `target`.
pub(super) fn extract_library(wheel: &Path, target: &Path) -> Result<()> {
    let file = File::open(wheel).map_err(Error::file("open", wheel))?;
    let mut archive = zip::ZipArchive::new(file)
        .map_err(|error| Error::content(wheel, format!("not a wheel: {error}")))?;
    let name = format!("mujoco/{}", library_file_name());
    let mut library = archive
        .by_name(&name)
        .map_err(|error| Error::content(wheel, format!("it has no {name}: {error}")))?;
    let mut output = File::create(target).map_err(Error::file("create", target))?;
    std::io::copy(&mut library, &mut output)
        .map_err(|error| Error::content(wheel, format!("could not extract {name}: {error}")))?;
    Ok(())
}
