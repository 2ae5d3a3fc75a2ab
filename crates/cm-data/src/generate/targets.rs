//! D4RL's data in figures, for comparison.
//!
//! The ranges are about three standard errors of 200 episodes around what the policy published by
//! D4RL gives by [`Recipe::D4rl`](cm_envs::ant_maze::Recipe::D4rl), made wider where the rows that
//! are known of D4RL's own files differ. `docs/antmaze.md` says where the figures come from.

use std::fmt;
use std::ops::RangeInclusive;

use cm_envs::ant_maze::{Maze, Task};

use super::Statistics;

/// One figure of a data set beside the range of D4RL's.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is compared.
    pub figure: &'static str,
    /// The figure of the data set; `None` where it has none, such as a median of nothing.
    pub found: Option<f64>,
    /// The range of D4RL's data.
    pub target: RangeInclusive<f64>,
}

impl Comparison {
    /// Whether the figure is in the range.
    pub fn is_met(&self) -> bool {
        self.found.is_some_and(|found| self.target.contains(&found))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.map_or("none".to_owned(), number);
        let (low, high) = (number(*self.target.start()), number(*self.target.end()));
        let outside = if self.is_met() { "" } else { ", outside" };
        write!(formatter, "{}: {found} (D4RL's {low} to {high}{outside})", self.figure)
    }
}

/// Three digits of a share, none of a number of steps.
fn number(number: f64) -> String {
    if number >= 10.0 { format!("{number:.0}") } else { format!("{number:.3}") }
}

/// Lowest and highest in umaze, umaze-diverse, the medium and the large maze.
type Ranges = [(f64, f64); 4];

/// Every figure that is known of D4RL's data, beside those of `found`.
pub(super) fn compare(found: &Statistics, task: Task) -> Vec<Comparison> {
    const MOTORS: Ranges = [(0.65, 0.90); 4];
    let place = match (task, task.maze()) {
        (Task::Umaze, _) => 0,
        (_, Maze::Umaze) => 1,
        (_, Maze::Medium) => 2,
        (_, Maze::Large) => 3,
    };
    let steps = found.median_steps_to_goal.map(|steps| steps as f64);
    let deviations = || found.motor_deviations.iter().copied();
    let (near, touch) = (found.rows_near_evaluation_goal, found.episodes_near_evaluation_goal);
    #[rustfmt::skip]
    let figures: [(&'static str, Option<f64>, Ranges); 12] = [
        ("episodes that arrive", Some(found.success_rate),
            [(0.20, 0.50), (0.40, 0.70), (0.15, 0.45), (0.15, 0.45)]),
        ("median steps of those", steps,
            [(180.0, 330.0), (90.0, 220.0), (150.0, 400.0), (180.0, 400.0)]),
        ("episodes that flip", Some(found.flipped),
            [(0.30, 0.70), (0.30, 0.60), (0.45, 0.75), (0.35, 0.70)]),
        ("rows on the back", Some(found.rows_on_back),
            [(0.15, 0.45), (0.15, 0.45), (0.25, 0.50), (0.20, 0.45)]),
        ("stuck episodes", Some(found.stuck),
            [(0.40, 0.65), (0.40, 0.65), (0.50, 0.75), (0.55, 0.85)]),
        ("speed upright", Some(found.speed_upright),
            [(0.75, 1.10), (0.70, 1.05), (0.75, 1.10), (0.70, 1.05)]),
        ("mean absolute action", Some(found.mean_abs_action), [(0.70, 0.80); 4]),
        ("actions at the limit", Some(found.actions_at_limit), [(0.25, 0.36); 4]),
        ("least deviation of a motor", deviations().reduce(f64::min), MOTORS),
        ("largest deviation of a motor", deviations().reduce(f64::max), MOTORS),
        ("rows near the evaluation's goal", Some(near),
            [(0.03, 0.10), (0.06, 0.18), (0.002, 0.015), (0.005, 0.025)]),
        ("episodes that touch it", Some(touch),
            [(0.30, 0.55), (0.40, 0.75), (0.08, 0.25), (0.05, 0.20)]),
    ];
    figures
        .map(|(figure, found, ranges)| {
            let (low, high) = ranges[place];
            Comparison { figure, found, target: low..=high }
        })
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_outside_their_range_say_so() {
        let figure = |found| Comparison { figure: "stuck episodes", found, target: 0.4..=0.65 };
        assert!(
            figure(Some(0.4)).is_met() && !figure(Some(0.66)).is_met() && !figure(None).is_met()
        );
        let line = "stuck episodes: 0.660 (D4RL's 0.400 to 0.650, outside)";
        assert_eq!(figure(Some(0.66)).to_string(), line);
        let steps =
            Comparison { figure: "median steps of those", found: None, target: 90.0..=220.0 };
        assert_eq!(steps.to_string(), "median steps of those: none (D4RL's 90 to 220, outside)");
    }
}
