//! What is to be generated: everything that the numbers depend on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::OgFigures;
use crate::output::is_unfinished;
use crate::{Error, Result};

/// The settings of a generated file, kept beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) task: String,
    pub(super) seed: u64,
    /// The number of the first episode.
    pub(super) first: u64,
    pub(super) episodes: u64,
    /// Of the file of the walking policy, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expert_sha256: Option<String>,
    /// The simulator's version.
    pub(super) mujoco: String,
}

#[derive(Serialize, Deserialize)]
struct Described<P> {
    plan: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<OgFigures>,
}

/// Where the plan of the data in `file` is written.
pub(super) fn beside(file: &Path) -> PathBuf {
    file.with_extension("toml")
}

impl Plan {
    /// Whether `file` was made by this plan. What another has made is refused.
    pub(super) fn is_done(&self, file: &Path) -> Result<bool> {
        if !file.exists() {
            return Ok(false);
        }
        match Self::load(&beside(file))? {
            Some(found) => self.ensure_same(&found, file, "was generated with").map(|()| true),
            // Cut off between the data and its description.
            None if is_unfinished(file) => Ok(false),
            None => {
                let reason = "nothing says how it was made; delete it, or write to another file";
                Err(Error::content(file, reason))
            }
        }
    }

    /// Refuses what another plan has made; `holds` says how it stands in `path`.
    pub(super) fn ensure_same(&self, found: &Self, path: &Path, holds: &'static str) -> Result<()> {
        let settings = [
            ("episodes", (self.first, self.episodes) == (found.first, found.episodes)),
            ("expert_sha256", self.expert_sha256 == found.expert_sha256),
            ("mujoco", self.mujoco == found.mujoco),
            ("seed", self.seed == found.seed),
            ("task", self.task == found.task),
        ];
        let differing = settings.into_iter().filter(|(_, same)| !same);
        let names: Vec<_> = differing.map(|(name, _)| format!("`{name}`")).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Error::OtherSettings { path: path.to_owned(), holds, names })
    }

    /// The plan in the file at `path`, if there is one.
    pub(super) fn load(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(Error::file("read", path))?,
        };
        let file: Described<Self> =
            toml::from_str(&text).map_err(|error| Error::content(path, error))?;
        Ok(Some(file.plan))
    }

    /// Writes the plan, and what became of it once that is known, to `path`.
    pub(super) fn save(&self, path: &Path, result: Option<&OgFigures>) -> Result<()> {
        let text = toml::to_string(&Described { plan: self, result: result.cloned() })
            .map_err(|error| Error::content(path, error))?;
        Ok(cm_files::replace(path, text)?)
    }
}
