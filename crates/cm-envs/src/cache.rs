//! The folder for what is downloaded, installed or generated.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder.
const VARIABLE: &str = "CM_DATA_DIR";

/// Where data sets and MuJoCo's library are kept, chosen at run time:
///
/// 1. the folder that `CM_DATA_DIR` names,
/// 2. `datasets/cache` of the checkout of this project that one stands in,
/// 3. `contrastive-metrics` in the user's folder for data: `XDG_DATA_HOME` or `~/.local/share`;
///    `~/Library/Application Support` on macOS; `LOCALAPPDATA` on Windows.
///
/// It need not be there yet.
///
/// ```
/// println!("{}", cm_envs::cache_folder().display());
/// ```
pub fn cache_folder() -> PathBuf {
    choose(
        |name| std::env::var_os(name).filter(|value| !value.is_empty()),
        std::env::current_dir().ok().as_deref(),
        std::env::home_dir().as_deref(),
    )
}

fn choose(
    variable: impl Fn(&str) -> Option<OsString>,
    here: Option<&Path>,
    home: Option<&Path>,
) -> PathBuf {
    if let Some(folder) = variable(VARIABLE) {
        return folder.into();
    }
    if let Some(root) = here.and_then(checkout) {
        // Settings of runs name data in it: relative to the root they hold wherever that is.
        let root = if here == Some(root) { Path::new("") } else { root };
        return root.join("datasets/cache");
    }
    let (set, usual) = match std::env::consts::OS {
        "macos" => (None, "Library/Application Support"),
        "windows" => (variable("LOCALAPPDATA"), "AppData/Local"),
        _ => (variable("XDG_DATA_HOME"), ".local/share"),
    };
    let data = set.map(PathBuf::from).or_else(|| Some(home?.join(usual)));
    data.unwrap_or_default().join("contrastive-metrics")
}

/// The checkout of this project that a folder lies in.
fn checkout(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join("crates/cm-envs/Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_goes_before_the_checkout_and_that_before_the_users_folder() {
        let home = Path::new("/home/ada");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let set = |name: &str| (name == VARIABLE).then(|| "elsewhere".into());
        assert_eq!(choose(set, Some(&here), Some(home)), Path::new("elsewhere"));
        let (users, none) = (tempfile::tempdir().unwrap(), |_: &str| None);
        let chosen = choose(none, Some(users.path()), Some(home));
        assert!(chosen.starts_with(home) && chosen.ends_with("contrastive-metrics"), "{chosen:?}");
        let set =
            |name: &str| ["XDG_DATA_HOME", "LOCALAPPDATA"].contains(&name).then(|| "d".into());
        if !cfg!(target_os = "macos") {
            let chosen = choose(set, Some(users.path()), Some(home));
            assert_eq!(chosen, Path::new("d/contrastive-metrics"));
        }
        // A package from elsewhere has no checkout around it.
        if let Some(root) = checkout(&here) {
            assert_eq!(choose(none, Some(&here), Some(home)), root.join("datasets/cache"));
            assert_eq!(choose(none, Some(root), Some(home)), Path::new("datasets/cache"));
        }
        assert_eq!(choose(none, None, None), Path::new("contrastive-metrics"));
    }
}
