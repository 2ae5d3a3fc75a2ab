//! What is in a generated data set, in figures.

use std::fmt;
use std::path::Path;

use cm_envs::ant_maze::uprightness;
use cm_envs::ogbench::{Agent, Behaviour, OgTask};
use cm_replay::{Dataset, Matrix};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Figures of a generated data set; prints as a short report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OgFigures {
    /// Episodes.
    pub episodes: usize,
    /// Rows.
    pub rows: usize,
    /// Goals reached in an episode, on average; none where nothing goes to a goal.
    pub goals_reached: Option<f64>,
    /// The share of episodes that reach a goal; none as above.
    pub arrived: Option<f64>,
    /// Steps to the first goal in the median episode of those that reach one.
    pub median_steps: Option<usize>,
    /// How far a step leads, on average.
    pub stride: f64,
    /// The share of rows in which an ant lies on its back; none of points.
    pub on_back: Option<f64>,
}

impl OgFigures {
    /// Reads the data through.
    pub(super) fn of(data: &Dataset, task: OgTask) -> Result<Self> {
        let (places, goals) = (extra(data, "qpos")?, extra(data, "goal")?);
        let apart = |a: &[f32], b: &[f32]| f64::from((a[0] - b[0]).hypot(a[1] - b[1]));
        let (mut reached, mut first, mut length, mut steps) = (0, Vec::new(), 0.0, 0);
        for trajectory in 0..data.trajectories() {
            let rows = data.trajectory(trajectory);
            let mut at = None;
            for row in rows.start..rows.end - 1 {
                let (here, there) = (places.row(row), places.row(row + 1));
                let step = apart(here, there);
                // A teleport is not a step.
                if step < 2.0 {
                    length += step;
                    steps += 1;
                }
                if apart(there, goals.row(row)) <= task.agent.success_radius() {
                    reached += 1;
                    at.get_or_insert(row + 1 - rows.start);
                }
            }
            first.extend(at);
        }
        first.sort_unstable();
        let count = data.trajectories();
        let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
        let goes = task.behaviour != Behaviour::Explore;
        let mean = (task.behaviour == Behaviour::Navigate).then(|| share(reached, count));
        let down = |row: &[f32]| uprightness([row[4], row[5]].map(f64::from)) < 0.0;
        let on_back = || share(places.iter().filter(|row| down(row)).count(), data.steps());
        Ok(Self {
            episodes: count,
            rows: data.steps(),
            goals_reached: mean,
            arrived: goes.then(|| share(first.len(), count)),
            median_steps: first.get(first.len() / 2).copied().filter(|_| goes),
            stride: length / f64::from(steps.max(1)),
            on_back: (task.agent == Agent::Ant).then(on_back),
        })
    }
}

fn extra<'a>(data: &'a Dataset, name: &str) -> Result<&'a Matrix> {
    let found = data.extras().get(name);
    found.ok_or_else(|| Error::content(Path::new("data"), format!("it has no array `{name}`")))
}

impl fmt::Display for OgFigures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} episodes, {} rows", self.episodes, self.rows)?;
        if let Some(mean) = self.goals_reached {
            write!(formatter, "\n{mean:.1} goals are reached in an episode")?;
        }
        if let Some(arrived) = self.arrived {
            write!(formatter, "\n{:.1} % of the episodes reach a goal", 100.0 * arrived)?;
        }
        if let Some(steps) = self.median_steps {
            write!(formatter, ", the median of them after {steps} steps")?;
        }
        write!(formatter, "\na step leads {:.3} far", self.stride)?;
        if let Some(share) = self.on_back {
            write!(formatter, "\n{:.2} % of the rows are on the back", 100.0 * share)?;
        }
        Ok(())
    }
}
