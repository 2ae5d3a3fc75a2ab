//! Settings of the 2-D world.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Settings of [`PointMaze`](super::PointMaze). The defaults are those of the paper's experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PointMazeSettings {
    /// The same seed gives the same world.
    pub seed: u64,
    /// How many path points are states; 20,000.
    pub states: usize,
    /// How many of the path points nearest to a state decide where it leads; 100.
    pub nearest: usize,
    /// Path points farther than this from a state lead nowhere from it; 3.
    pub reach: f32,
    /// How many points ahead on its path a point leads; 8.
    pub ahead: usize,
    /// How far a step aims; 1.5.
    pub step_speed: f32,
    /// Standard deviation of where a step aims, in each coordinate; 1.
    pub step_noise: f32,
    /// Standard deviation of what is observed, in each coordinate; 0.2.
    pub obs_noise: f32,
    /// How near to the goal is near enough; 2.
    pub success_radius: f32,
    /// The longest episode; 2,000 steps.
    pub horizon: usize,
    /// An episode's goal is the farthest of this many states; 10.
    pub goal_candidates: usize,
}

impl Default for PointMazeSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            states: 20_000,
            nearest: 100,
            reach: 3.0,
            ahead: 8,
            step_speed: 1.5,
            step_noise: 1.0,
            obs_noise: 0.2,
            success_radius: 2.0,
            horizon: 2_000,
            goal_candidates: 10,
        }
    }
}

impl PointMazeSettings {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<(), Error> {
        let counts = [
            ("states", self.states),
            ("nearest", self.nearest),
            ("goal_candidates", self.goal_candidates),
        ];
        if let Some((what, _)) = counts.into_iter().find(|&(_, count)| count == 0) {
            return Err(Error::Empty { what });
        }
        let numbers = [
            ("reach", self.reach),
            ("step_speed", self.step_speed),
            ("step_noise", self.step_noise),
            ("obs_noise", self.obs_noise),
            ("success_radius", self.success_radius),
        ];
        match numbers.into_iter().find(|&(_, number)| !(number >= 0.0 && number.is_finite())) {
            Some((what, found)) => {
                Err(Error::Value { what: what.to_owned(), found: f64::from(found) })
            }
            None => Ok(()),
        }
    }
}
