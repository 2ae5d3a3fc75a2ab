//! The node that stands for a state, found without asking the metric about every node.

use super::RoadMap;
use super::measure::{Measure, Points, gather};
use crate::{Model, Result};

/// Maps of so many nodes are searched whole.
const FEW: usize = 256;
/// So are those of states of more numbers: the nearest by all of them may be somewhere else.
const NARROW: usize = 8;
/// Otherwise the metric decides between so many nodes, the nearest ones as the model sees states.
const NEAR: usize = 4;

/// The nodes of a map, for a thread.
pub(crate) struct Nodes {
    pub(super) points: Points,
    /// As the model sees them: the first number of all nodes, then the second, and so on.
    scaled: Vec<f32>,
}

impl Nodes {
    /// Of the points of a map's nodes.
    pub(crate) fn new(map: &RoadMap, model: &Model, points: Points) -> Self {
        let scaled = model.scaled(map.nodes());
        let column = |column: usize| scaled.iter().copied().skip(column).step_by(map.width);
        Self { points, scaled: (0..map.width).flat_map(column).collect() }
    }

    /// The `count` nearest of some nodes as the model sees them, the nearest first.
    pub(super) fn near(
        &self,
        state: &[f32],
        count: usize,
        among: impl Fn(usize) -> bool,
    ) -> Vec<u32> {
        let nodes = self.scaled.len() / state.len();
        let mut away = vec![0.0; nodes];
        for (others, own) in self.scaled.chunks_exact(nodes).zip(state) {
            away.iter_mut().zip(others).for_each(|(away, x)| *away += (x - own) * (x - own));
        }
        let mut near: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
        for (node, away) in away.into_iter().enumerate() {
            if (near.len() < count || away < near[count - 1].0) && among(node) {
                near.insert(near.partition_point(|known| known.0 <= away), (away, node as u32));
                near.truncate(count);
            }
        }
        near.into_iter().map(|(_, node)| node).collect()
    }
}

/// Whether a map has so many nodes that only some are compared with a state.
pub(super) fn is_large(map: &RoadMap) -> bool {
    map.rule.radius.is_none() && map.width <= NARROW && map.nodes().len() / map.width > FEW
}

/// For each state the nodes that lead to it if these are `ends`, else those that it leads to: the
/// node that stands for it, the nearest by the larger of the distances there and back, and those
/// that are linked with that. `points` are those of the states.
pub(super) fn find(
    map: &RoadMap,
    (measure, model): (&Measure<'_>, &Model),
    nodes: &Nodes,
    states: &[f32],
    points: &Points,
    ends: bool,
) -> Result<Vec<Vec<(u32, f32)>>> {
    let pairs = |asked: &[(usize, u32)]| -> Result<[Points; 2]> {
        let states = gather(points, asked.iter().map(|&(at, _)| at))?;
        let others = gather(&nodes.points, asked.iter().map(|&(_, node)| node as usize))?;
        Ok(if ends { [others, states] } else { [states, others] })
    };
    let scaled = model.scaled(states);
    let asked: Vec<(usize, u32)> = (scaled.chunks_exact(map.width).enumerate())
        .flat_map(|(at, state)| {
            nodes.near(state, NEAR, |_| true).into_iter().map(move |node| (at, node))
        })
        .collect();
    let [from, to] = pairs(&asked)?;
    let along = measure.rows(&from, &to)?;
    let against = measure.rows(&to, &from)?;
    // Of each state the nodes nearby with their distances, and the one that stands for it.
    let mut nearby = vec![Vec::with_capacity(NEAR); points.rows()];
    let mut least = vec![(f32::INFINITY, 0); points.rows()];
    for ((&(at, node), along), against) in asked.iter().zip(&along).zip(against) {
        nearby[at].push((node, *along));
        let away = along.max(against);
        if away < least[at].0 {
            least[at] = (away, node);
        }
    }
    let known = |at: usize, node: u32| nearby[at].iter().find(|(near, _)| *near == node);
    let linked = |at: usize| map.linked(least[at].1, ends);
    let asked: Vec<(usize, u32)> = (0..points.rows())
        .flat_map(|at| linked(at).map(move |node| (at, node)))
        .filter(|&(at, node)| known(at, node).is_none())
        .collect();
    let found = match asked.is_empty() {
        true => Vec::new(),
        false => {
            let [from, to] = pairs(&asked)?;
            measure.rows(&from, &to)?
        }
    };
    let mut found = found.into_iter();
    let near = |at: usize| {
        let own = known(at, least[at].1).filter(|(_, length)| *length <= map.rule.reach);
        let others = linked(at).filter_map(|node| {
            let length = match known(at, node) {
                Some((_, length)) => Some(*length),
                // In the order in which they were asked for.
                None => found.next(),
            };
            length.filter(|length| *length <= map.rule.link).map(|length| (node, length))
        });
        own.copied().into_iter().chain(others).collect()
    };
    Ok((0..points.rows()).map(near).collect())
}
