//! Distances composed of short ones along the ways of the data.

use std::collections::BTreeMap;

use cm_nn::Var;
use cm_replay::{Dataset, Split};

use super::{CHUNK, Model};
use crate::plan::{Roads, Way};
use crate::{Error, GreedyPath, Result};

impl Model {
    /// Raises each distance to that of the shortest way over the data.
    pub(super) fn compose(&self, roads: &Roads, from: &[f32], to: &[f32], distances: &mut [f32]) {
        let width = self.dimensions.state();
        let node = |state: &[f32]| roads.nearest(&self.scaled(state));
        let mut known: BTreeMap<usize, Vec<Way>> = BTreeMap::new();
        let (mut last_from, mut last_to) = ((&[][..], 0), (&[][..], 0));
        let rows = from.chunks_exact(width).zip(to.chunks_exact(width)).zip(distances);
        for ((start, goal), distance) in rows {
            // One end is often the same for all rows.
            if last_from.0 != start {
                last_from = (start, node(start));
            }
            if last_to.0 != goal {
                last_to = (goal, node(goal));
            }
            if start == goal {
                continue;
            }
            let ways = known.entry(last_to.1).or_insert_with(|| roads.ways_to(last_to.1));
            *distance = distance.max(ways[last_from.1].remaining);
        }
    }

    /// The shortest way from one state to another over states of the data. It arrives unless the
    /// data has no way.
    ///
    /// What remains at each state is the composed distance there.
    pub fn path(&self, from: &[f32], to: &[f32]) -> Result<GreedyPath> {
        let Some(roads) = self.roads() else {
            return Err(Error::Setting {
                setting: "read_out".to_owned(),
                expected: "distances that are composed over the data, of a run that has ended",
                found: self.read_out().to_string(),
            });
        };
        let distance = self.distances(from, to)?[0];
        let mut path = GreedyPath::starting(from, distance);
        if distance.is_infinite() {
            return Ok(path);
        }
        let (start, goal) = (roads.nearest(&self.scaled(from)), roads.nearest(&self.scaled(to)));
        let ways = roads.ways_to(goal);
        let mut at = ways[start].next;
        // Start and goal are in the place of the nodes that stand for them.
        while let Some(node) = at.map(|node| node as usize).filter(|&node| node != goal) {
            path.push(&self.unscaled(roads.node(node)), ways[node].remaining);
            at = ways[node].next;
        }
        if from != to {
            path.push(to, 0.0);
        }
        path.arrived = true;
        Ok(path)
    }

    /// The ways of the data under this model's metric; none if its trajectories hardly meet.
    pub(crate) fn find_roads(&self, data: &Dataset, split: &Split) -> Result<Option<Roads>> {
        let gamma = self.settings.goals.gamma;
        // As far ahead as goals are on average.
        let horizon = (1.0 / (1.0 - gamma)).round().clamp(1.0, 100.0) as usize;
        let metric = self.metric()?;
        let width = self.dimensions.state();
        Roads::of_data(data, split, horizon, |nodes, pairs| {
            let shape = [nodes.len() / width, width];
            let points = metric.points(&Var::new(&self.backend, shape, nodes.to_vec())?)?;
            let (columns, points) = (points.columns(), points.to_vec()?);
            let mut lengths = Vec::with_capacity(pairs.len());
            for pairs in pairs.chunks(CHUNK) {
                let gather = |end: fn(&(u32, u32)) -> u32| {
                    let rows = pairs.iter().map(|pair| end(pair) as usize * columns);
                    let values: Vec<f32> =
                        rows.flat_map(|row| &points[row..row + columns]).copied().collect();
                    Var::new(&self.backend, [pairs.len(), columns], values)
                };
                let found = metric.rows(&gather(|pair| pair.0)?, &gather(|pair| pair.1)?)?;
                lengths.extend(found.to_vec()?);
            }
            Ok(lengths)
        })
    }
}
