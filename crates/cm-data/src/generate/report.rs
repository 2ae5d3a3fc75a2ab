//! What is in a generated data set, in figures; prints as a short report.

use std::fmt;

use cm_envs::ant_maze::{Coverage, Recipe, Task};
use cm_replay::Dataset;
use serde::{Deserialize, Serialize};

use super::statistics::{self, Statistics};
use super::targets::{Comparison, compare};
use crate::Result;

/// Figures of a generated data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What the episodes and rows have in them.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// The share of rows with a reward.
    pub rewarded: f64,
    /// The share of the free squares of half a unit that were visited.
    pub coverage: f64,
    /// Where data by D4RL's recipe leaves the range of D4RL's own, in words; empty if nowhere.
    pub outside_targets: Vec<String>,
    #[serde(skip)]
    comparison: Vec<Comparison>,
}

impl Report {
    /// Reads the data through. Also gives the map of where it has been.
    pub(super) fn of(data: &Dataset, task: Task, recipe: Recipe) -> Result<(Self, Coverage)> {
        let statistics = Statistics::of(data, task)?;
        let rewards = statistics::extra(data, "rewards")?;
        let rewarded = rewards.iter().filter(|row| row[0] > 0.0).count();
        let mut coverage = Coverage::new(task.maze());
        for row in data.observations().iter() {
            coverage.visit([row[0], row[1]]);
        }
        let comparison = match recipe {
            Recipe::D4rl => compare(&statistics, task),
            Recipe::D4rlCode | Recipe::Clean => Vec::new(),
        };
        let outside = comparison.iter().filter(|figure| !figure.is_met());
        let report = Self {
            rewarded: rewarded as f64 / data.steps().max(1) as f64,
            coverage: coverage.share(),
            outside_targets: outside.map(ToString::to_string).collect(),
            comparison,
            statistics,
        };
        Ok((report, coverage))
    }

    /// The figures beside those of D4RL's data; none for another recipe than D4RL's.
    pub fn comparison(&self) -> &[Comparison] {
        &self.comparison
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let found = &self.statistics;
        let median = found.median_steps_to_goal;
        let median = median.map(|steps| format!(", the median of them after {steps} steps"));
        writeln!(
            formatter,
            "{} episodes of {} to {} rows",
            found.episodes, found.shortest_episode, found.longest_episode
        )?;
        let median = median.unwrap_or_default();
        writeln!(formatter, "{} reach their goal{median}", percent(found.success_rate))?;
        writeln!(formatter, "{} have the ant on its back at some time", percent(found.flipped))?;
        writeln!(formatter, "{} are stuck at some time", percent(found.stuck))?;
        writeln!(formatter, "{} of the rows are on the back", percent(found.rows_on_back))?;
        writeln!(formatter, "{} of the rows have a reward", percent(self.rewarded))?;
        write!(formatter, "{} of the free floor is visited", percent(self.coverage))?;
        if !self.comparison.is_empty() {
            write!(formatter, "\nbeside D4RL's data:")?;
        }
        self.comparison.iter().try_for_each(|figure| write!(formatter, "\n  {figure}"))
    }
}
