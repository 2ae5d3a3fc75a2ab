//! Greedy paths: from place to place within a ball, always to where the goal is nearest by the learned distance (the paper, Figure 2).

use cm_nn::Backend;

use crate::{Error, Model, Result};

/// How to plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planner {
    /// How far one move may go, in the state's own units.
    pub radius: f32,
    /// The longest path.
    pub longest: usize,
    /// How near to the goal is near enough.
    pub arrived: f32,
}

/// A greedy path.
#[derive(Clone, Debug, PartialEq)]
pub struct GreedyPath {
    /// The states it passes, whole and one after another: the start, places, and if it arrived the goal.
    pub states: Vec<Vec<f32>>,
    /// The learned distance from each to the goal.
    pub distances: Vec<f32>,
    /// Whether it reached the goal. If not, it stands where nothing within the radius is nearer.
    pub arrived: bool,
}

impl GreedyPath {
    /// Its length in the state's own units.
    pub fn length(&self) -> f32 {
        self.states.windows(2).map(|pair| l2(&pair[0], &pair[1])).sum()
    }
}

impl Planner {
    /// Plans from each start to one goal through `places`, whole states one after another.
    ///
    /// The distance from every place to the goal is computed once, so many starts cost little more than one.
    pub fn paths<B: Backend + 'static>(
        &self,
        model: &Model<B>,
        places: &[f32],
        starts: &[f32],
        goal: &[f32],
    ) -> Result<Vec<GreedyPath>> {
        for (setting, found) in [("radius", self.radius), ("arrived", self.arrived)] {
            if !(found > 0.0 && found.is_finite()) {
                let found = found.to_string();
                return Err(Error::Setting { setting, expected: "positive", found });
            }
        }
        let width = model.dimensions().state();
        let distances = model.distances_to(places, goal)?;
        let at_start = model.distances_to(starts, goal)?;
        let paths = starts.chunks_exact(width).zip(at_start);
        Ok(paths
            .map(|(start, distance)| self.walk(places, &distances, start, distance, goal))
            .collect())
    }

    fn walk(
        &self,
        places: &[f32],
        distances: &[f32],
        start: &[f32],
        distance: f32,
        goal: &[f32],
    ) -> GreedyPath {
        let mut path =
            GreedyPath { states: vec![start.to_vec()], distances: vec![distance], arrived: false };
        let (mut here, mut distance) = (start, distance);
        while path.states.len() < self.longest {
            if l2(here, goal) <= self.arrived {
                path.states.push(goal.to_vec());
                path.distances.push(0.0);
                path.arrived = true;
                break;
            }
            let near = places.chunks_exact(goal.len()).zip(distances);
            let near = near.filter(|(place, _)| l2(here, place) <= self.radius);
            let Some((next, &nearer)) = near.min_by(|a, b| a.1.total_cmp(b.1)) else { break };
            if nearer >= distance {
                break;
            }
            (here, distance) = (next, nearer);
            path.states.push(here.to_vec());
            path.distances.push(distance);
        }
        path
    }
}

fn l2(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
}
