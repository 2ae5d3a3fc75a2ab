//! Many states whose distances are asked again and again.

use cm_nn::{DfdxBackend, Var};

use super::{CHUNK, Model};
use crate::Result;

/// States made ready for a [`Model`]: the distance from or to all of them then costs no network,
/// unless the read-out needs actions.
///
/// The numbers are those of [`Model::distances`] up to the rounding of single precision.
pub struct Places {
    states: Vec<f32>,
    /// Chunks of points of the metric, and the node of every state; empty if actions are needed.
    points: Vec<Var<DfdxBackend>>,
    nodes: Vec<u32>,
}

impl Places {
    /// Whole states, one after another, in their own units.
    pub fn new(model: &Model, states: Vec<f32>) -> Result<Self> {
        let width = model.dimensions.state();
        model.check_rows("states", states.len(), width)?;
        let (mut points, mut nodes) = (Vec::new(), Vec::new());
        if let Ok(metric) = model.metric().map_err(drop).and_then(|metric| {
            let composed =
                matches!(model.read_out(), crate::ReadOut::States | crate::ReadOut::Composed);
            composed.then_some(metric).ok_or(())
        }) {
            for states in states.chunks(CHUNK * width) {
                points.push(metric.points(&model.states(states)?)?);
            }
            if let Some(roads) = model.roads() {
                let node = |state: &[f32]| roads.nearest(&model.scaled(state)) as u32;
                nodes = states.chunks_exact(width).map(node).collect();
            }
        }
        Ok(Self { states, points, nodes })
    }

    /// The states.
    pub fn states(&self) -> &[f32] {
        &self.states
    }

    /// From every state to one goal.
    pub fn to(&self, model: &Model, goal: &[f32]) -> Result<Vec<f32>> {
        self.all(model, goal, true)
    }

    /// From one state to every state.
    pub fn from(&self, model: &Model, state: &[f32]) -> Result<Vec<f32>> {
        self.all(model, state, false)
    }

    fn all(&self, model: &Model, end: &[f32], towards: bool) -> Result<Vec<f32>> {
        model.check_rows("state", end.len(), model.dimensions.state())?;
        if self.points.is_empty() {
            return match towards {
                true => model.distances_to(&self.states, end),
                false => model.distances_from(end, &self.states),
            };
        }
        let metric = model.metric()?;
        let point = metric.points(&model.states(end)?)?;
        let mut distances = Vec::new();
        for points in &self.points {
            let found = match towards {
                true => metric.pairs(points, &point)?,
                false => metric.pairs(&point, points)?,
            };
            distances.extend(found.to_vec()?);
        }
        if let Some(roads) = model.roads() {
            let node = roads.nearest(&model.scaled(end));
            let ways = if towards { roads.ways_to(node) } else { roads.ways_from(node) };
            let states = self.states.chunks_exact(end.len()).zip(&self.nodes);
            for ((state, &node), distance) in states.zip(&mut distances) {
                if state != end {
                    *distance = distance.max(ways[node as usize].remaining);
                }
            }
        }
        Ok(distances)
    }
}
