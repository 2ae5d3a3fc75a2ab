//! What lies beside a generated data set and says how it was made.

use std::path::Path;

use cm_envs::ant_maze::{Recipe, Task};

use super::plan::Plan;
use super::targets::{Comparison, compare};
use super::{Report, Statistics};
use crate::expert::Expert;
use crate::{Error, Result};

/// How a data set was generated, and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The task.
    pub task: Task,
    /// By which numbers.
    pub recipe: Recipe,
    /// Its figures.
    pub statistics: Statistics,
}

impl Description {
    /// Reads the description of the data set in `file`. A file that nothing describes is refused.
    pub fn of(file: &Path) -> Result<Self> {
        let path = file.with_extension("toml");
        let Some((plan, result)) = Plan::load_with::<Report>(&path)? else {
            return Err(Error::content(file, UNKNOWN));
        };
        let refused = |error: cm_envs::Error| Error::content(&path, error);
        let report = result.ok_or_else(|| Error::content(&path, "it has no `result`"))?;
        Ok(Self {
            task: plan.task.parse().map_err(refused)?,
            recipe: plan.recipe.parse().map_err(refused)?,
            statistics: report.statistics,
        })
    }

    /// Refuses the data set in `file` unless `recipe` made it for `task`, `expert` walking.
    ///
    /// ```
    /// use cm_data::Description;
    /// use cm_data::expert::{Expert, ExpertFile};
    /// use cm_envs::ant_maze::{Maze, Recipe, Task};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("walks.cmdata");
    /// let expert = Expert::open(&ExpertFile::D4rl(Maze::Umaze))?;
    /// let error = Description::ensure(&file, Task::Umaze, Recipe::D4rl, &expert).unwrap_err();
    /// assert!(error.to_string().contains("nothing says how it was made"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ensure(file: &Path, task: Task, recipe: Recipe, expert: &Expert) -> Result<()> {
        let Some(plan) = Plan::load(&file.with_extension("toml"))? else {
            return Err(Error::content(file, UNKNOWN));
        };
        for (what, expected, found) in [
            ("recipe", recipe.name(), plan.recipe),
            ("task", task.name(), plan.task),
            ("walking policy", expert.sha256(), plan.expert_sha256),
        ] {
            if expected != found {
                let (path, expected) = (file.to_owned(), expected.to_owned());
                return Err(Error::OtherData { path, what, expected, found });
            }
        }
        Ok(())
    }

    /// The figures beside those of D4RL's data.
    pub fn comparison(&self) -> Vec<Comparison> {
        compare(&self.statistics, self.task)
    }
}

/// Why data without a description is not taken.
pub(super) const UNKNOWN: &str =
    "nothing says how it was made; delete it, or write to another file";
