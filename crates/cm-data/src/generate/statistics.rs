//! Figures of AntMaze data: of one that is generated as of D4RL's own.

use std::ops::Range;

use cm_envs::ant_maze::{Task, is_near, uprightness};
use cm_random::Philox;
use cm_replay::{Dataset, Matrix};
use serde::{Deserialize, Serialize};

use crate::Result;

/// How many goals of the evaluation are looked at.
const EVALUATION_GOALS: u64 = 32;
/// Steps in a second.
const RATE: f64 = 10.0;
/// An ant is stuck that moves less than this in so many steps, farther than that from its goal.
const STUCK_MOVE: f64 = 0.5;
const STUCK_STEPS: usize = 100;
const STUCK_DISTANCE: f64 = 1.0;

/// What AntMaze data has in it. Shares are of 1, lengths in the maze's units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
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
    /// The share of rows within 0.5 of the episode's goal.
    pub rows_near_goal: f64,
    /// The share of episodes in which the ant was on its back at some time.
    pub flipped: f64,
    /// The share of rows with the ant on its back.
    pub rows_on_back: f64,
    /// The share of episodes in which an ant on its feet moved less than 0.5 in some 100 steps,
    /// more than 1 away from its goal.
    pub stuck: f64,
    /// Mean units per second of ants that are not on their backs.
    pub speed_upright: f64,
    /// Below which 5, 25, 50, 75 and 95 per cent of these speeds are.
    pub speed_quantiles: [f64; 5],
    /// Mean of the absolute numbers of actions.
    pub mean_abs_action: f64,
    /// The share of the numbers of actions that are exactly 1 or -1.
    pub actions_at_limit: f64,
    /// Standard deviation of each motor's action.
    pub motor_deviations: Vec<f64>,
    /// The share of rows within 0.5 of a goal of the evaluation, mean over its goals.
    pub rows_near_evaluation_goal: f64,
    /// The share of episodes with such a row, mean over the goals.
    pub episodes_near_evaluation_goal: f64,
}

impl Statistics {
    /// Reads the data of `task` through, which needs `infos/goal` and `infos/qpos`.
    pub fn of(data: &Dataset, task: Task) -> Result<Self> {
        let (goals, positions) = (extra(data, "infos/goal")?, extra(data, "infos/qpos")?);
        let trajectories = || (0..data.trajectories()).map(|number| data.trajectory(number));
        let of_episodes = |count: usize| share(count, data.trajectories());
        let of_rows = |count: usize| share(count, data.steps());
        let near = |row: usize| is_near(place(positions.row(row)), place(goals.row(row)));
        let mut arrivals: Vec<usize> = trajectories()
            .filter_map(|rows| Some(rows.clone().find(|&row| near(row))? + 1 - rows.start))
            .collect();
        arrivals.sort_unstable();
        let on_back = |row: usize| upside_down(positions.row(row));
        let flips = trajectories().filter(|rows| rows.clone().any(on_back)).count();
        let stuck = trajectories().filter(|rows| is_stuck(rows.clone(), goals, positions)).count();

        let upright = (0..data.steps()).filter(|&row| !on_back(row));
        let mut speeds: Vec<f64> = upright
            .map(|row| {
                RATE * distance(place(data.observations().row(row)), place(positions.row(row)))
            })
            .collect();
        speeds.sort_unstable_by(f64::total_cmp);
        let quantile =
            |share: f64| speeds.get((share * speeds.len() as f64) as usize).copied().unwrap_or(0.0);
        let actions = || data.actions().iter().flatten().map(|&action| f64::from(action));
        let numbers = data.steps() * data.actions().columns();
        let at_goals = near_evaluation_goals(positions, trajectories, task);
        Ok(Self {
            episodes: data.trajectories(),
            shortest_episode: trajectories().map(|rows| rows.len()).min().unwrap_or(0),
            longest_episode: trajectories().map(|rows| rows.len()).max().unwrap_or(0),
            success_rate: of_episodes(arrivals.len()),
            median_steps_to_goal: arrivals.get(arrivals.len() / 2).copied(),
            rows_near_goal: of_rows((0..data.steps()).filter(|&row| near(row)).count()),
            flipped: of_episodes(flips),
            rows_on_back: of_rows(data.steps() - speeds.len()),
            stuck: of_episodes(stuck),
            speed_upright: mean(speeds.iter().copied(), speeds.len()),
            speed_quantiles: [0.05, 0.25, 0.5, 0.75, 0.95].map(quantile),
            mean_abs_action: mean(actions().map(f64::abs), numbers),
            actions_at_limit: share(
                actions().filter(|action| action.abs() == 1.0).count(),
                numbers,
            ),
            motor_deviations: deviations(data.actions()),
            rows_near_evaluation_goal: of_rows(at_goals.0) / EVALUATION_GOALS as f64,
            episodes_near_evaluation_goal: of_episodes(at_goals.1) / EVALUATION_GOALS as f64,
        })
    }
}

/// A further array of the data.
pub(super) fn extra<'a>(data: &'a Dataset, name: &str) -> Result<&'a Matrix> {
    let found = data.extras().get(name).ok_or_else(|| cm_replay::Error::Missing {
        key: name.to_owned(),
        found: data.extras().keys().cloned().collect(),
    });
    Ok(found?)
}

/// Rows and episodes near a goal of the evaluation, each counted once for every goal.
fn near_evaluation_goals<I: Iterator<Item = Range<usize>>>(
    positions: &Matrix,
    trajectories: impl Fn() -> I,
    task: Task,
) -> (usize, usize) {
    let (mut rows, mut episodes) = (0, 0);
    for number in 0..EVALUATION_GOALS {
        let goal = task.draw_goal(&mut Philox::new(0).stream(number, 0));
        for trajectory in trajectories() {
            let near = trajectory.filter(|&row| is_near(place(positions.row(row)), goal)).count();
            rows += near;
            episodes += usize::from(near > 0);
        }
    }
    (rows, episodes)
}

fn is_stuck(mut rows: Range<usize>, goals: &Matrix, positions: &Matrix) -> bool {
    let end = rows.end;
    rows.any(|row| {
        let later = row + STUCK_STEPS;
        if later >= end || upside_down(positions.row(later)) {
            return false;
        }
        let [from, to] = [row, later].map(|row| place(positions.row(row)));
        let goal = place(goals.row(row));
        distance(from, to) < STUCK_MOVE && distance(to, goal) > STUCK_DISTANCE
    })
}

fn deviations(actions: &Matrix) -> Vec<f64> {
    let column = |index: usize| actions.iter().map(move |row| f64::from(row[index]));
    (0..actions.columns())
        .map(|index| {
            let middle = mean(column(index), actions.rows());
            mean(column(index).map(|x| (x - middle).powi(2)), actions.rows()).sqrt()
        })
        .collect()
}

fn place(numbers: &[f32]) -> [f64; 2] {
    [f64::from(numbers[0]), f64::from(numbers[1])]
}

fn distance(from: [f64; 2], to: [f64; 2]) -> f64 {
    (to[0] - from[0]).hypot(to[1] - from[1])
}

fn upside_down(position: &[f32]) -> bool {
    uprightness([position[4].into(), position[5].into()]) < 0.0
}

fn share(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}

fn mean(numbers: impl Iterator<Item = f64>, count: usize) -> f64 {
    numbers.sum::<f64>() / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(columns: usize, numbers: Vec<f32>) -> Matrix {
        Matrix::from_vec(numbers.len() / columns, columns, numbers).unwrap()
    }

    fn position(x: f32, upright: bool) -> Vec<f32> {
        let mut position = vec![0.0; 15];
        (position[0], position[3]) = (x, 1.0);
        if !upright {
            (position[3], position[4]) = (0.0, 1.0);
        }
        position
    }

    /// Rows of ants that go from `from` to `to` in x with their goals' x.
    fn data(rows: &[(f32, f32, bool, f32)], actions: Vec<f32>, ends: Vec<usize>) -> Dataset {
        let before = rows.iter().flat_map(|row| [row.0, 0.0]).collect();
        let after: Vec<_> = rows.iter().map(|row| position(row.1, row.2)).collect();
        let goals = rows.iter().flat_map(|row| [row.3, 0.0]).collect();
        Dataset::new(matrix(2, before), matrix(2, actions), ends)
            .unwrap()
            .with_extra("infos/goal", matrix(2, goals))
            .unwrap()
            .with_extra("infos/qpos", matrix(15, after.concat()))
            .unwrap()
    }

    #[test]
    fn counts_arrivals_flips_speeds_and_actions() {
        // Two trajectories of two rows; the second arrives after two steps and lies on its back at
        // first.
        let rows = [
            (0.0, 0.1, true, 9.0),
            (0.1, 0.4, true, 9.0),
            (4.0, 5.0, false, 8.4),
            (7.8, 8.0, true, 8.4),
        ];
        let data = data(&rows, vec![1.0, 0.5, -1.0, 0.5, 1.0, 0.5, -1.0, -0.5], vec![2, 4]);
        let found = Statistics::of(&data, Task::Umaze).unwrap();
        assert_eq!((found.episodes, found.shortest_episode, found.longest_episode), (2, 2, 2));
        assert_eq!((found.success_rate, found.median_steps_to_goal), (0.5, Some(2)));
        assert_eq!((found.flipped, found.rows_on_back, found.rows_near_goal), (0.5, 0.25, 0.25));
        assert_eq!((found.mean_abs_action, found.actions_at_limit, found.stuck), (0.75, 0.5, 0.0));
        // 1, 3 and 2 units per second.
        assert!((found.speed_upright - 2.0).abs() < 1e-5, "{}", found.speed_upright);
        assert!((found.speed_quantiles[2] - 2.0).abs() < 1e-5);
        assert!((found.motor_deviations[0] - 1.0).abs() < 1e-12);
        assert!((found.motor_deviations[1] - 0.1875_f64.sqrt()).abs() < 1e-12);
        assert_eq!(found.rows_near_evaluation_goal, 0.0);
    }

    #[test]
    fn stuck_is_to_stand_still_on_ones_feet_far_from_the_goal() {
        let stuck = |steps: usize, upright: bool, goal: f32, speed: f32| {
            let row = |step: usize| (speed * step as f32, speed * (step + 1) as f32, upright, goal);
            let rows: Vec<_> = (0..steps).map(row).collect();
            let data = data(&rows, vec![0.0; 2 * steps], vec![steps]);
            Statistics::of(&data, Task::Umaze).unwrap().stuck
        };
        assert_eq!(stuck(101, true, 9.0, 0.001), 1.0);
        assert_eq!(stuck(100, true, 9.0, 0.001), 0.0); // too short to tell
        assert_eq!(stuck(101, false, 9.0, 0.001), 0.0);
        assert_eq!(stuck(101, true, 0.9, 0.001), 0.0);
        assert_eq!(stuck(101, true, 90.0, 0.01), 0.0);
    }

    #[test]
    fn every_goal_of_the_evaluation_counts() {
        // All goals of umaze lie within [0, 1.5] x [8, 9.5].
        let mut at_goals = data(&[(0.0, 0.75, true, 0.0); 4], vec![0.0; 8], vec![2, 4]);
        let mut positions = position(0.75, true);
        positions[1] = 8.75;
        let far = position(30.0, true);
        let all = [&positions, &far, &far, &far].map(Vec::as_slice).concat();
        at_goals = at_goals.with_extra("infos/qpos", matrix(15, all)).unwrap();
        let found = Statistics::of(&at_goals, Task::Umaze).unwrap();
        let near = found.rows_near_evaluation_goal;
        // Of a goal's draws a bit more than half are within 0.5 of the middle.
        assert!((0.4..0.8).contains(&(4.0 * near)), "{near}");
        assert_eq!(found.episodes_near_evaluation_goal, 2.0 * near);
    }
}
