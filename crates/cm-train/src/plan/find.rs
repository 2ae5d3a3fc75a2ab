//! The node that stands for a state, found without asking the metric about every node.

use super::RoadMap;
use super::sight::{Sight, Spots};
use crate::{Model, Result};

/// Maps of so many nodes are searched whole.
const FEW: usize = 256;
/// So are those of states of more numbers: the nearest by all of them may be somewhere else.
const NARROW: usize = 8;
/// Otherwise the metric decides between so many nodes, the nearest ones as the model sees states.
const NEAR: usize = 4;

/// The nodes of a map, for all threads.
pub(crate) struct Nodes {
    spots: Spots,
    /// Their numbers, in the order of the first coordinate as the model sees them.
    order: Vec<u32>,
    /// The first coordinate of all of them in that order, then the second, and so on.
    scaled: Vec<f32>,
}

impl Nodes {
    /// Of the points of a map's nodes.
    pub(crate) fn new(map: &RoadMap, model: &Model, spots: Spots) -> Self {
        let scaled = model.scaled(map.nodes());
        let at = |node: u32, column: usize| scaled[node as usize * map.width + column];
        let mut order: Vec<u32> = (0..).take(scaled.len() / map.width).collect();
        order.sort_by(|&a, &b| at(a, 0).total_cmp(&at(b, 0)));
        let columns = 0..map.width;
        let scaled = columns.flat_map(|column| order.iter().map(move |&node| at(node, column)));
        Self { spots, scaled: scaled.collect(), order }
    }

    /// Their points.
    pub(crate) fn spots(&self) -> &Spots {
        &self.spots
    }

    /// The `count` nearest of some nodes as the model sees them, the nearest first.
    ///
    /// From the state on, by the first coordinate, until that alone is too far.
    pub(super) fn near(
        &self,
        state: &[f32],
        count: usize,
        among: impl Fn(usize) -> bool,
    ) -> Vec<u32> {
        let nodes = self.order.len();
        let apart = |place: usize, column: usize| {
            let apart = self.scaled[column * nodes + place] - state[column];
            apart * apart
        };
        let mut near: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
        let mut above = self.scaled[..nodes].partition_point(|first| *first < state[0]);
        let mut below = above;
        while below > 0 || above < nodes {
            let up = below == 0 || above < nodes && apart(above, 0) < apart(below - 1, 0);
            let place = if up { above } else { below - 1 };
            (below, above) = if up { (below, above + 1) } else { (below - 1, above) };
            let farthest = near.get(count - 1).copied();
            if farthest.is_some_and(|(farthest, _)| apart(place, 0) > farthest) {
                break;
            }
            let away = (0..state.len()).map(|column| apart(place, column)).sum();
            let found = (away, self.order[place]);
            if farthest.is_none_or(|farthest| found < farthest) && among(found.1 as usize) {
                near.insert(near.partition_point(|known| *known < found), found);
                near.truncate(count);
            }
        }
        near.into_iter().map(|(_, node)| node).collect()
    }
}

/// Whether a map has so many nodes that only some are compared with a state.
pub(crate) fn is_large(map: &RoadMap) -> bool {
    map.rule.radius.is_none() && map.width <= NARROW && map.nodes().len() / map.width > FEW
}

/// For each state the nodes that lead to it if these are `ends`, else those that it leads to: the
/// node that stands for it, the nearest by the larger of the distances there and back, and those
/// that are linked with that. `spots` are where the states are.
pub(super) fn find(
    map: &RoadMap,
    sight: &Sight<'_>,
    nodes: &Nodes,
    states: &[f32],
    spots: &Spots,
    ends: bool,
) -> Result<Vec<Vec<(u32, f32)>>> {
    let pair = |&(at, node): &(usize, u32)| {
        let (state, other) = (spots.row(at), nodes.spots().row(node as usize));
        if ends { (other, state) } else { (state, other) }
    };
    let scaled = sight.model.scaled(states);
    let asked: Vec<(usize, u32)> = (scaled.chunks_exact(map.width).enumerate())
        .flat_map(|(at, state)| {
            nodes.near(state, NEAR, |_| true).into_iter().map(move |node| (at, node))
        })
        .collect();
    let there: Vec<_> = asked.iter().map(pair).collect();
    let back: Vec<_> = there.iter().map(|&(from, to)| (to, from)).collect();
    let (along, against) = (sight.distances(&there)?, sight.distances(&back)?);
    // Of each state the nodes nearby with their distances, and the one that stands for it.
    let mut nearby = vec![Vec::with_capacity(NEAR); spots.rows()];
    let mut least = vec![(f32::INFINITY, 0); spots.rows()];
    for ((&(at, node), along), against) in asked.iter().zip(&along).zip(against) {
        nearby[at].push((node, *along));
        let away = along.max(against);
        if away < least[at].0 {
            least[at] = (away, node);
        }
    }
    let known = |at: usize, node: u32| nearby[at].iter().find(|(near, _)| *near == node);
    let linked = |at: usize| map.linked(least[at].1, ends);
    let asked: Vec<(usize, u32)> = (0..spots.rows())
        .flat_map(|at| linked(at).map(move |node| (at, node)))
        .filter(|&(at, node)| known(at, node).is_none())
        .collect();
    let found = sight.distances(&asked.iter().map(pair).collect::<Vec<_>>())?;
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
    Ok((0..spots.rows()).map(near).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::model::barely_trained;
    use crate::plan::road_map::Rule;

    #[test]
    fn the_nearest_nodes_are_those_of_a_search_of_all() {
        let (model, _) = barely_trained(Method::Cmd1);
        // A grid, so that many are equally far, in an order that is not that of the grid.
        let place = |node: usize| [(node * 37 % 101 / 10) as f32, (node * 37 % 101 % 10) as f32];
        let nodes: Vec<f32> = (0..101).flat_map(place).collect();
        let rule = Rule { link: 1.0, reach: 3.0, steps: 3, radius: None, noisy: false };
        let map = RoadMap::with_links(2, nodes.clone(), Vec::new(), rule);
        let spots = Sight::new(&model, None).unwrap().spots(&nodes).unwrap();
        let found = Nodes::new(&map, &model, spots);
        let scaled = model.scaled(&nodes);
        for state in [[3.0, 4.0], [2.5, 7.5], [-9.0, 4.2], [30.0, -1.0]] {
            let state = model.scaled(&state);
            for (count, among) in [(4, 1), (32, 3), (200, 2)] {
                let away = |node: &u32| -> f32 {
                    let node = scaled[*node as usize * 2..].iter();
                    node.zip(&state).map(|(a, b)| (a - b) * (a - b)).sum()
                };
                let mut all: Vec<u32> = (0..101).filter(|node| node % among == 0).collect();
                all.sort_by(|a, b| away(a).total_cmp(&away(b)));
                all.truncate(count);
                assert_eq!(found.near(&state, count, |node| node % among as usize == 0), all);
            }
        }
    }
}
