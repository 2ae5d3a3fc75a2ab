//! What lies beside any generated data set.

use std::path::Path;

use crate::{Error, Result};

/// Refuses the data set in `file` if it was generated for another task than `task`. Data that came
/// otherwise is not looked into.
///
/// ```
/// use cm_data::ensure_task;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("walks.cmdata");
/// ensure_task(&file, "antmaze-umaze-v2")?;
/// std::fs::write(file.with_extension("toml"), "[plan]\ntask = \"antmaze-large-play-v2\"")?;
/// let error = ensure_task(&file, "antmaze-umaze-v2").unwrap_err().to_string();
/// assert!(error.ends_with("it holds data of `antmaze-large-play-v2`, expected `antmaze-umaze-v2`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ensure_task(file: &Path, task: &str) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Described {
        plan: Plan,
    }
    #[derive(serde::Deserialize)]
    struct Plan {
        task: String,
    }
    // A file of that name may be anybody's.
    let text = std::fs::read_to_string(file.with_extension("toml")).unwrap_or_default();
    match toml::from_str(&text) {
        Ok(Described { plan: Plan { task: found } }) if found != task => {
            Err(Error::content(file, format!("it holds data of `{found}`, expected `{task}`")))
        }
        _ => Ok(()),
    }
}
