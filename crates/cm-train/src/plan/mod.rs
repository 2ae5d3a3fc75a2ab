//! Paths through given places that go down a learned distance.

mod cover;
#[cfg(test)]
mod exact;
mod file;
mod find;
mod graph;
mod greedy;
mod links;
mod luck;
mod measure;
mod of_data;
mod one_walk;
mod road_map;
mod roads;
mod sample;
mod settings;
mod sight;
mod trust;
mod walk;

pub(crate) use find::{Nodes, is_large};
pub(crate) use graph::Way;
pub use greedy::Planner;
pub(crate) use measure::Measure;
pub use road_map::{Links, RoadMap};
pub use roads::Roads;
pub use settings::PlanSettings;
pub(crate) use sight::Sight;
pub use trust::Trust;
pub use walk::Walked;
pub(crate) use walk::Walker;

/// A path that goes from place to place, always to where less of the way remains.
#[derive(Clone, Debug, PartialEq)]
pub struct GreedyPath {
    /// The states it passes, whole and one after another: the start, places, and if it arrived the
    /// goal.
    pub states: Vec<Vec<f32>>,
    /// What remains from each to the goal: the learned distance, or that along a [`RoadMap`].
    pub distances: Vec<f32>,
    /// Whether it reached the goal. If not, it stands where no move brings it nearer.
    pub arrived: bool,
}

impl GreedyPath {
    pub(crate) fn starting(state: &[f32], distance: f32) -> Self {
        Self { states: vec![state.to_vec()], distances: vec![distance], arrived: false }
    }

    pub(crate) fn push(&mut self, state: &[f32], distance: f32) {
        self.states.push(state.to_vec());
        self.distances.push(distance);
    }

    /// Its length in the state's own units.
    ///
    /// ```
    /// use cm_train::GreedyPath;
    ///
    /// let states = vec![vec![0.0, 0.0], vec![3.0, 4.0], vec![3.0, 5.0]];
    /// let path = GreedyPath { states, distances: vec![1.2, 0.2, 0.0], arrived: true };
    /// assert_eq!(path.length(), 6.0);
    /// ```
    pub fn length(&self) -> f32 {
        // From zero: the sum of nothing is -0.
        self.states.windows(2).fold(0.0, |sum, pair| sum + l2(&pair[0], &pair[1]))
    }
}

fn l2(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
}
