//! What is to be generated: everything that the numbers depend on.

use std::path::Path;

use cm_envs::ant_maze::Recipe;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The settings of a generated data set, kept beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// The task's name.
    pub(super) task: String,
    pub(super) seed: u64,
    /// Rows altogether.
    pub(super) transitions: usize,
    /// The recipe's name. What was made before there were recipes is clean.
    #[serde(default = "clean")]
    pub(super) recipe: String,
    /// `floor` or `round`.
    pub(super) cells: String,
    /// Standard deviation of the noise on actions.
    pub(super) noise: f32,
    /// Of the file of the walking policy.
    pub(super) expert_sha256: String,
    /// The simulator's version.
    pub(super) mujoco: String,
}

fn clean() -> String {
    Recipe::Clean.to_string()
}

impl Plan {
    /// Refuses what another plan has made; `holds` says how it stands in `path`.
    pub(super) fn ensure_same(&self, found: &Self, path: &Path, holds: &'static str) -> Result<()> {
        let settings = [
            ("cells", self.cells == found.cells),
            ("expert_sha256", self.expert_sha256 == found.expert_sha256),
            ("mujoco", self.mujoco == found.mujoco),
            ("noise", self.noise == found.noise),
            ("recipe", self.recipe == found.recipe),
            ("seed", self.seed == found.seed),
            ("task", self.task == found.task),
            ("transitions", self.transitions == found.transitions),
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
        Ok(Self::load_with::<toml::Table>(path)?.map(|(plan, _)| plan))
    }

    /// The plan in the file at `path`, and what became of it if that is there.
    pub(super) fn load_with<R: DeserializeOwned>(path: &Path) -> Result<Option<(Self, Option<R>)>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(Error::file("read", path))?,
        };
        #[derive(Deserialize)]
        struct File<R> {
            plan: Plan,
            result: Option<R>,
        }
        let file: File<R> = toml::from_str(&text).map_err(|error| Error::content(path, error))?;
        Ok(Some((file.plan, file.result)))
    }

    /// Writes the plan, and what became of it once that is known, to `path`.
    pub(super) fn save(&self, path: &Path, result: Option<&super::Report>) -> Result<()> {
        #[derive(Serialize)]
        struct File<'a> {
            plan: &'a Plan,
            result: Option<&'a super::Report>,
        }
        let text = toml::to_string(&File { plan: self, result })
            .map_err(|error| Error::content(path, error))?;
        Ok(cm_files::replace(path, text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            task: "antmaze-umaze-v2".into(),
            seed: 0,
            transitions: 1_000_000,
            recipe: "d4rl".into(),
            cells: "floor".into(),
            noise: 0.2,
            expert_sha256: String::new(),
            mujoco: String::new(),
        }
    }

    #[test]
    fn differences_are_named() {
        let compare =
            |other: &Plan| plan().ensure_same(other, Path::new("a.cmdata"), "was made with");
        compare(&plan()).unwrap();
        let message = compare(&Plan { seed: 1, noise: 0.1, ..plan() }).unwrap_err().to_string();
        let start = "a.cmdata was made with other settings (`noise`, `seed`);";
        assert!(message.starts_with(start), "{message}");
    }

    #[test]
    fn plans_are_read_back() {
        let plan = plan();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        assert_eq!(Plan::load(&path).unwrap(), None);
        plan.save(&path, None).unwrap();
        assert_eq!(Plan::load(&path).unwrap(), Some(plan));
        std::fs::write(&path, "[plan]\ntask = 3").unwrap();
        assert!(Plan::load(&path).unwrap_err().to_string().contains("plan.toml"));
    }
}
