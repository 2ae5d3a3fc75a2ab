//! What is in a generated data set: how often episodes arrived, how often ants fell over, where
//! they have been.

use std::fmt;

use cm_envs::ant_maze::{Coverage, Maze, is_near, uprightness};
use cm_replay::{Dataset, Matrix};
use serde::Serialize;

use crate::Result;

/// Figures of a generated data set; prints as a short report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How many episodes there are.
    pub episodes: usize,
    /// Rows of the shortest.
    pub shortest_episode: usize,
    /// Rows of the longest.
    pub longest_episode: usize,
    /// The share of episodes that came to where they were sent.
    pub success_rate: f64,
    /// The median of the steps that took, over those that arrived.
    pub median_steps_to_goal: Option<usize>,
    /// The share of episodes in which the ant was on its back at some time.
    pub flipped: f64,
    /// The share of rows with a reward.
    pub rewarded: f64,
    /// The share of the free squares of half a unit that were visited.
    pub coverage: f64,
}

impl Report {
    /// Reads the data through. Also gives the map of where it has been.
    pub(super) fn of(data: &Dataset, maze: Maze) -> Result<(Self, Coverage)> {
        let extra = |name: &str| {
            data.extras().get(name).ok_or_else(|| cm_replay::Error::Missing {
                key: name.to_owned(),
                found: data.extras().keys().cloned().collect(),
            })
        };
        let (goals, positions, rewards) =
            (extra("infos/goal")?, extra("infos/qpos")?, extra("rewards")?);
        let mut coverage = Coverage::new(maze);
        for row in data.observations().iter() {
            coverage.visit([row[0], row[1]]);
        }
        let trajectories = || (0..data.trajectories()).map(|number| data.trajectory(number));
        let mut arrivals: Vec<usize> =
            trajectories().filter_map(|rows| arrival(rows, goals, positions)).collect();
        arrivals.sort_unstable();
        let flips =
            trajectories().filter(|rows| rows.clone().any(|row| upside_down(positions.row(row))));
        let rewarded = rewards.iter().filter(|row| row[0] > 0.0).count();
        let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let report = Self {
            episodes: data.trajectories(),
            shortest_episode: trajectories().map(|rows| rows.len()).min().unwrap_or(0),
            longest_episode: trajectories().map(|rows| rows.len()).max().unwrap_or(0),
            success_rate: share(arrivals.len(), data.trajectories()),
            median_steps_to_goal: arrivals.get(arrivals.len() / 2).copied(),
            flipped: share(flips.count(), data.trajectories()),
            rewarded: share(rewarded, data.steps()),
            coverage: coverage.share(),
        };
        Ok((report, coverage))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let median = self.median_steps_to_goal;
        let median = median.map(|steps| format!(", the median of them after {steps} steps"));
        writeln!(
            formatter,
            "{} episodes of {} to {} rows",
            self.episodes, self.shortest_episode, self.longest_episode
        )?;
        let median = median.unwrap_or_default();
        writeln!(formatter, "{} reach their goal{median}", percent(self.success_rate))?;
        writeln!(formatter, "{} have the ant on its back at some time", percent(self.flipped))?;
        writeln!(formatter, "{} of the rows have a reward", percent(self.rewarded))?;
        write!(formatter, "{} of the free floor is visited", percent(self.coverage))
    }
}

/// After how many steps a trajectory was first at its goal.
fn arrival(mut rows: std::ops::Range<usize>, goals: &Matrix, positions: &Matrix) -> Option<usize> {
    let start = rows.start;
    let place = |numbers: &[f32]| [f64::from(numbers[0]), f64::from(numbers[1])];
    let first = rows.find(|&row| is_near(place(positions.row(row)), place(goals.row(row))))?;
    Some(first + 1 - start)
}

fn upside_down(position: &[f32]) -> bool {
    uprightness([position[4].into(), position[5].into()]) < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_arrivals_flips_and_rewards() {
        // Two trajectories of two rows; the second arrives after two steps and lies on its back at
        // first.
        let matrix = |columns: usize, numbers: Vec<f32>| {
            Matrix::from_vec(numbers.len() / columns, columns, numbers).unwrap()
        };
        let position = |x: f32, upright: bool| {
            let mut position = vec![0.0; 15];
            (position[0], position[3]) = (x, 1.0);
            if !upright {
                (position[3], position[4]) = (0.0, 1.0);
            }
            position
        };
        let positions =
            [position(1.0, true), position(2.0, true), position(5.0, false), position(8.0, true)];
        let data = Dataset::new(
            matrix(2, vec![0.0, 0.0, 1.0, 0.0, 4.0, 0.0, 5.0, 0.0]),
            matrix(1, vec![0.0; 4]),
            vec![2, 4],
        )
        .unwrap()
        .with_extra("infos/goal", matrix(2, vec![9.0, 0.0, 9.0, 0.0, 8.4, 0.0, 8.4, 0.0]))
        .unwrap()
        .with_extra("infos/qpos", matrix(15, positions.concat()))
        .unwrap()
        .with_extra("rewards", matrix(1, vec![0.0, 1.0, 0.0, 0.0]))
        .unwrap();
        let (report, _) = Report::of(&data, Maze::Umaze).unwrap();
        assert_eq!(
            report,
            Report {
                episodes: 2,
                shortest_episode: 2,
                longest_episode: 2,
                success_rate: 0.5,
                median_steps_to_goal: Some(2),
                flipped: 0.5,
                rewarded: 0.25,
                coverage: 4.0 / 448.0,
            }
        );
        assert!(
            report
                .to_string()
                .contains("50.0 % reach their goal, the median of them after 2 steps")
        );
    }
}
