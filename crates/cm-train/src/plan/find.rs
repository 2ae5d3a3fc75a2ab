//! The node that stands for a state, found without asking the metric about every node.

use std::collections::BTreeMap;

use super::measure::{Measure, Points, gather};
use super::{RoadMap, l2};
use crate::{Model, Result};

/// Maps of so many nodes are searched whole.
const FEW: usize = 256;
/// Otherwise the metric decides between so many nodes, the nearest ones as the model sees states.
const NEAR: usize = 8;

/// Where a state is on a map.
pub(super) struct Found {
    /// The node that stands for it: the nearest by the larger of the distances there and back.
    pub(super) own: u32,
    /// The distances to nodes and back that were looked at; all of the linked ones are.
    pub(super) apart: BTreeMap<u32, [f32; 2]>,
}

/// The nodes of a map, for a thread.
pub(crate) struct Nodes {
    pub(super) points: Points,
    /// As the model sees them.
    scaled: Vec<f32>,
}

impl Nodes {
    /// Of the points of a map's nodes.
    pub(crate) fn new(map: &RoadMap, model: &Model, points: Points) -> Self {
        Self { points, scaled: model.scaled(map.nodes()) }
    }

    /// The nearest nodes as the model sees them.
    fn near(&self, state: &[f32]) -> Vec<u32> {
        let nodes = self.scaled.chunks_exact(state.len()).enumerate();
        let mut all: Vec<(f32, u32)> =
            nodes.map(|(node, other)| (l2(other, state), node as u32)).collect();
        let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        if all.len() > NEAR {
            all.select_nth_unstable_by(NEAR, order);
            all.truncate(NEAR);
        }
        all.sort_unstable_by(order);
        all.into_iter().map(|(_, node)| node).collect()
    }
}

/// Whether a map has so many nodes that only some are compared with a state.
pub(super) fn is_large(map: &RoadMap) -> bool {
    map.rule.radius.is_none() && map.nodes().len() / map.width > FEW
}

/// Where states are, and their `points`.
pub(super) fn find(
    map: &RoadMap,
    (measure, model): (&Measure<'_>, &Model),
    nodes: &Nodes,
    states: &[f32],
    points: &Points,
) -> Result<Vec<Found>> {
    let apart = |asked: &[(usize, u32)]| -> Result<Vec<[f32; 2]>> {
        let states = gather(points, asked.iter().map(|&(at, _)| at))?;
        let ends = gather(&nodes.points, asked.iter().map(|&(_, node)| node as usize))?;
        let there = measure.rows(&states, &ends)?;
        let back = measure.rows(&ends, &states)?;
        Ok(there.into_iter().zip(back).map(|(there, back)| [there, back]).collect())
    };
    let scaled = model.scaled(states);
    let near = scaled.chunks_exact(map.width).enumerate();
    let asked: Vec<(usize, u32)> = near
        .flat_map(|(at, state)| nodes.near(state).into_iter().map(move |node| (at, node)))
        .collect();
    let mut all: Vec<Found> =
        (0..points.rows()).map(|_| Found { own: 0, apart: BTreeMap::new() }).collect();
    let mut least = vec![f32::INFINITY; all.len()];
    for (&(at, node), apart) in asked.iter().zip(apart(&asked)?) {
        let away = apart[0].max(apart[1]);
        if away < least[at] {
            (least[at], all[at].own) = (away, node);
        }
        all[at].apart.insert(node, apart);
    }
    let asked: Vec<(usize, u32)> = (all.iter().enumerate())
        .flat_map(|(at, found)| {
            let linked = map.linked(found.own).filter(|node| !found.apart.contains_key(node));
            linked.map(move |node| (at, node))
        })
        .collect();
    if !asked.is_empty() {
        for (&(at, node), apart) in asked.iter().zip(apart(&asked)?) {
            all[at].apart.insert(node, apart);
        }
    }
    Ok(all)
}
