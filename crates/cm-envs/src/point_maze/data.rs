//! What the agent learns from: short walks in random directions.

use cm_random::{Philox, Stream, unit_f64};
use rand_core::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::paths::{add, normal, unit};
use super::{PointMaze, streams};
use crate::{Env, Error};

/// How the data is collected. The defaults are those of the paper's experiment.
///
/// Each trajectory keeps one random direction, to which noise is added in every step; it is cut at
/// a random length, so that none crosses the plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Collection {
    /// How many trajectories; 2,000.
    pub trajectories: usize,
    /// Mean length before the cut at `longest`, of a geometric distribution; 24.
    pub mean_length: f64,
    /// The longest trajectory; 200.
    pub longest: usize,
    /// The same seed gives the same data.
    pub seed: u64,
}

impl Default for Collection {
    fn default() -> Self {
        Self { trajectories: 2_000, mean_length: 24.0, longest: 200, seed: 0 }
    }
}

/// Trajectories, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trajectories {
    /// What was observed at each step, noise included.
    pub observations: Vec<[f32; 2]>,
    /// What was done there, a direction.
    pub actions: Vec<[f32; 2]>,
    /// The step after the last one of each trajectory.
    pub ends: Vec<usize>,
}

impl Collection {
    /// Walks through `maze`.
    ///
    /// ```
    /// use cm_envs::point_maze::{Collection, PointMaze, PointMazeSettings};
    ///
    /// let maze = PointMaze::new(PointMazeSettings { states: 1_000, ..Default::default() })?;
    /// let data = Collection { trajectories: 10, ..Default::default() }.collect(&maze)?;
    /// assert_eq!(data.ends.len(), 10);
    /// assert_eq!(data.observations.len(), data.ends[9]);
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn collect(&self, maze: &PointMaze) -> Result<Trajectories, Error> {
        if self.trajectories == 0 || self.longest == 0 {
            let what = if self.longest == 0 { "longest" } else { "trajectories" };
            return Err(Error::Empty { what });
        }
        if !(self.mean_length >= 1.0 && self.mean_length.is_finite()) {
            return Err(Error::MeanLength { found: self.mean_length });
        }
        let philox = Philox::new(self.seed);
        let walks: Vec<_> = (0..self.trajectories)
            .into_par_iter()
            .map(|number| self.walk(maze, philox.stream(number as u64, streams::DATA)))
            .collect::<Result<_, Error>>()?;
        let mut all = Trajectories::default();
        for (observations, actions) in walks {
            all.observations.extend(observations);
            all.actions.extend(actions);
            all.ends.push(all.observations.len());
        }
        Ok(all)
    }

    fn walk(
        &self,
        maze: &PointMaze,
        mut random: Stream,
    ) -> Result<(Vec<[f32; 2]>, Vec<[f32; 2]>), Error> {
        let length = self.length(unit_f64(random.next_u64()));
        let base = normal(&mut random);
        let mut directions = random.clone();
        // The episode's own numbers begin far beyond those of the directions.
        random.seek(1 << 33);
        let mut episode = maze.begin(random)?;
        let (mut observations, mut actions) = (Vec::new(), Vec::new());
        for _ in 0..length {
            let mut seen = [0.0; 2];
            maze.observe(&mut episode, &mut seen);
            let action = unit(add(base, normal(&mut directions)));
            observations.push(seen);
            actions.push(action);
            maze.step(&mut episode, &action)?;
        }
        Ok((observations, actions))
    }

    /// The geometric distribution over 1, 2, ... by inversion, cut at the longest.
    fn length(&self, u: f64) -> usize {
        if self.mean_length == 1.0 {
            return 1;
        }
        let tail = (1.0 - u).ln() / (1.0 - 1.0 / self.mean_length).ln();
        // A cast saturates.
        (tail as usize).saturating_add(1).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_geometric() {
        let collection = Collection::default();
        let share = |k: usize| {
            let hits = (0..100_000).filter(|&i| collection.length((i as f64 + 0.5) / 1e5) == k);
            hits.count() as f64 / 1e5
        };
        let exact = |k: i32| (1.0 - 1.0 / 24.0_f64).powi(k - 1) / 24.0;
        for k in [1, 2, 24, 100] {
            assert!((share(k) - exact(k as i32)).abs() < 3e-5, "{k}");
        }
        let beyond = (1.0 - 1.0 / 24.0_f64).powi(199);
        assert!((share(200) - beyond).abs() < 3e-5);
    }
}
