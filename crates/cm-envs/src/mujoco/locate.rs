//! Where the library is looked for.

use std::path::{Path, PathBuf};

use super::VERSION;

/// The environment variable that names the library's file.
pub const VARIABLE: &str = "CM_MUJOCO";

/// What MuJoCo calls the file of its library on this system.
///
/// ```
/// assert!(cm_envs::mujoco::library_file_name().contains("mujoco"));
/// ```
pub fn library_file_name() -> String {
    if cfg!(target_os = "windows") {
        "mujoco.dll".to_owned()
    } else if cfg!(target_os = "macos") {
        format!("libmujoco.{VERSION}.dylib")
    } else {
        format!("libmujoco.so.{VERSION}")
    }
}

/// Where `cargo xtask mujoco install` puts the library: in `CM_DATA_DIR`, or in the git-ignored `datasets/cache` of the workspace.
pub fn installed_library() -> PathBuf {
    let cache = match std::env::var_os("CM_DATA_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => {
            let package = Path::new(env!("CARGO_MANIFEST_DIR"));
            package.ancestors().nth(2).unwrap_or(package).join("datasets/cache")
        }
    };
    cache.join(format!("mujoco-{VERSION}")).join(library_file_name())
}

/// The file that the environment variable names, if it is set.
pub(super) fn named_library() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Names for the system's loader to search with.
pub(super) fn system_names() -> Vec<String> {
    vec![library_file_name(), libloading::library_filename("mujoco").to_string_lossy().into_owned()]
}
