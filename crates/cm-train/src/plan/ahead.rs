//! The distances that a look at episodes asks for, all in one go.

use super::measure::{Measure, Points, gather};
use crate::Result;

/// Which distances a look asks for: from where an episode stands to nodes and goals.
#[derive(Default)]
pub(super) struct Ahead {
    /// The place among those asked, the row of where it stands, and the node or the goal.
    nodes: Vec<[usize; 3]>,
    goals: Vec<[usize; 3]>,
}

impl Ahead {
    /// Asks for the distance from the row `from` to a node; to a goal if there is none.
    pub(super) fn push(&mut self, from: usize, node: Option<&u32>, goal: usize) {
        let place = self.nodes.len() + self.goals.len();
        match node {
            Some(&node) => self.nodes.push([place, from, node as usize]),
            None => self.goals.push([place, from, goal]),
        }
    }

    /// What was asked for, in that order.
    pub(super) fn distances(
        &self,
        measure: &Measure<'_>,
        points: &Points,
        nodes: &Points,
        goals: &Points,
    ) -> Result<Vec<f32>> {
        let mut distances = vec![0.0; self.nodes.len() + self.goals.len()];
        for (asked, ends) in [(&self.nodes, nodes), (&self.goals, goals)] {
            if asked.is_empty() {
                continue;
            }
            let from = gather(points, asked.iter().map(|[_, from, _]| *from))?;
            let to = gather(ends, asked.iter().map(|[_, _, to]| *to))?;
            let found = measure.rows(&from, &to)?;
            asked.iter().zip(found).for_each(|([place, ..], found)| distances[*place] = found);
        }
        Ok(distances)
    }
}
