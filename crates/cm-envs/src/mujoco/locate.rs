//! Where the library is looked for.

use std::path::PathBuf;

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

/// Where `cm mujoco install` puts the library: in [`crate::cache_folder`].
pub fn installed_library() -> PathBuf {
    crate::cache_folder().join(format!("mujoco-{VERSION}")).join(library_file_name())
}

/// The file that the environment variable names, if it is set.
pub(super) fn named_library() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Names for the system's loader to search with.
pub(super) fn system_names() -> Vec<String> {
    vec![library_file_name(), libloading::library_filename("mujoco").to_string_lossy().into_owned()]
}
