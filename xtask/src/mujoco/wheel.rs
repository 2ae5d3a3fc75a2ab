//! A Python wheel is a zip archive; MuJoCo's holds the library.

use std::fs::File;
use std::path::Path;

use anyhow::Context;
use cm_envs::mujoco::library_file_name;

/// Writes the library inside `wheel` to `target`.
pub(super) fn extract_library(wheel: &Path, target: &Path) -> anyhow::Result<()> {
    let file = File::open(wheel).with_context(|| format!("could not open {}", wheel.display()))?;
    let mut archive =
        zip::ZipArchive::new(file).with_context(|| format!("{}: not a wheel", wheel.display()))?;
    let name = format!("mujoco/{}", library_file_name());
    let mut library =
        archive.by_name(&name).with_context(|| format!("{}: it has no {name}", wheel.display()))?;
    let mut output =
        File::create(target).with_context(|| format!("could not create {}", target.display()))?;
    std::io::copy(&mut library, &mut output)
        .with_context(|| format!("could not extract {name} from {}", wheel.display()))?;
    Ok(())
}
