//! What is to be generated: everything that the numbers depend on.

use anyhow::Context;
use cm_envs::ant_maze::{CellRule, Recipe, Task};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::Path;

/// The settings of a generated data set, kept beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// The task's name.
    pub(super) task: String,
    pub(super) seed: u64,
    /// Rows altogether.
    pub(super) transitions: usize,
    /// `floor` or `round`.
    pub(super) cells: String,
    /// Standard deviation of the noise on actions.
    pub(super) noise: f32,
    /// Of the file of the walking policy.
    pub(super) expert_sha256: String,
    /// The simulator's version.
    pub(super) mujoco: String,
}

impl Plan {
    pub(super) fn task(&self) -> anyhow::Result<Task> {
        Ok(self.task.parse()?)
    }

    pub(super) fn cells(&self) -> anyhow::Result<CellRule> {
        Ok(self.cells.parse()?)
    }

    pub(super) fn episodes(&self) -> usize {
        self.transitions.div_ceil(Recipe::EPISODE)
    }

    /// Rows of an episode: all but the last have the same number.
    pub(super) fn rows(&self, episode: usize) -> usize {
        (self.transitions - episode * Recipe::EPISODE).min(Recipe::EPISODE)
    }

    /// Refuses what another plan has made: `found` says how, `what` begins the message.
    pub(super) fn ensure_same(&self, found: &Self, what: impl Display) -> anyhow::Result<()> {
        let found = toml::Table::try_from(found)?;
        let settings = toml::Table::try_from(self)?.into_iter();
        let differing = settings.filter(|(name, value)| found.get(name) != Some(value));
        let names: Vec<_> = differing.map(|(name, _)| format!("`{name}`")).collect();
        anyhow::ensure!(
            names.is_empty(),
            "{what} other settings ({}); delete it, or give another --out",
            names.join(", ")
        );
        Ok(())
    }

    /// The plan in the file at `path`, if there is one.
    pub(super) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("could not read {}", path.display()))?,
        };
        #[derive(Deserialize)]
        struct File {
            plan: Plan,
        }
        let file: File =
            toml::from_str(&text).with_context(|| format!("could not read {}", path.display()))?;
        Ok(Some(file.plan))
    }

    /// Writes the plan, and what became of it once that is known, to `path`.
    pub(super) fn save(&self, path: &Path, result: Option<&super::Report>) -> anyhow::Result<()> {
        #[derive(Serialize)]
        struct File<'a> {
            plan: &'a Plan,
            result: Option<&'a super::Report>,
        }
        let text = toml::to_string(&File { plan: self, result })?;
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
            cells: "floor".into(),
            noise: 0.2,
            expert_sha256: String::new(),
            mujoco: String::new(),
        }
    }

    #[test]
    fn differences_are_named() {
        plan().ensure_same(&plan(), "made with").unwrap();
        let other = Plan { seed: 1, noise: 0.1, ..plan() };
        let message = plan().ensure_same(&other, "made with").unwrap_err().to_string();
        assert!(message.starts_with("made with other settings (`noise`, `seed`);"), "{message}");
    }

    #[test]
    fn a_million_rows_are_999_episodes_and_one_row() {
        let plan = plan();
        assert_eq!(
            (plan.episodes(), plan.rows(0), plan.rows(998), plan.rows(999)),
            (1000, 1001, 1001, 1)
        );
        assert_eq!((0..1000).map(|episode| plan.rows(episode)).sum::<usize>(), 1_000_000);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        assert_eq!(Plan::load(&path).unwrap(), None);
        plan.save(&path, None).unwrap();
        assert_eq!(Plan::load(&path).unwrap(), Some(plan));
        std::fs::write(&path, "[plan]\ntask = 3").unwrap();
        assert!(format!("{:#}", Plan::load(&path).unwrap_err()).contains("plan.toml"));
    }
}
