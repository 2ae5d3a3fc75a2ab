//! Shortest ways through a directed graph.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What remains from a node: how far, and the next node if it is not the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Way {
    /// Infinite if there is no way.
    pub(crate) remaining: f32,
    pub(crate) next: Option<u32>,
}

/// For each node others, and how long the links between them are.
pub(crate) type Neighbours = Vec<Vec<(u32, f32)>>;

/// Links by the node they lead to, and by the node they come from.
pub(crate) fn by_ends(nodes: usize, links: &[(u32, u32, f32)]) -> [Neighbours; 2] {
    let (mut into, mut onto) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for &(from, to, length) in links {
        into[to as usize].push((from, length));
        onto[from as usize].push((to, length));
    }
    [into, onto]
}

/// The shortest way from every node to any of `ends`, each with what remains from there (Dijkstra).
/// `neighbours` are those from which links lead to a node; links to nodes that are shunned are longer
/// by what is given with them.
pub(crate) fn shortest(
    neighbours: &Neighbours,
    ends: &[(u32, f32)],
    shunned: &BTreeMap<u32, f32>,
) -> Vec<Way> {
    let mut search = Search::new(neighbours.len(), ends);
    search.finish(neighbours, shunned);
    search.ways
}

/// [`shortest`] ways that are found from the ends on, as far as they are asked for.
pub(crate) struct Search {
    ways: Vec<Way>,
    /// Nodes to go on from, each as one number whose order is that of the lengths, then of the
    /// nodes.
    reached: BinaryHeap<Reverse<u64>>,
    /// Ways up to this length are known.
    known: f32,
}

impl Search {
    pub(crate) fn new(nodes: usize, ends: &[(u32, f32)]) -> Self {
        let ways = vec![Way { remaining: f32::INFINITY, next: None }; nodes];
        let mut search = Self { ways, reached: BinaryHeap::new(), known: f32::NEG_INFINITY };
        for &(node, remaining) in ends {
            search.offer(node, Way { remaining, next: None });
        }
        search
    }

    /// Whether any node has a way.
    pub(crate) fn has_ways(&self) -> bool {
        !self.reached.is_empty() || self.ways.iter().any(|way| way.remaining.is_finite())
    }

    /// The way from a node. Those from nodes that were never asked for may be too long.
    pub(crate) fn way(&self, node: u32) -> Way {
        self.ways[node as usize]
    }

    /// Finds the ways from some nodes, given the same links each time.
    pub(crate) fn find(
        &mut self,
        neighbours: &Neighbours,
        shunned: &BTreeMap<u32, f32>,
        wanted: impl IntoIterator<Item = u32>,
    ) {
        for node in wanted {
            while self.way(node).remaining > self.known {
                self.step(neighbours, shunned);
            }
        }
    }

    /// Finds the ways from all nodes.
    pub(crate) fn finish(&mut self, neighbours: &Neighbours, shunned: &BTreeMap<u32, f32>) {
        while self.known < f32::INFINITY {
            self.step(neighbours, shunned);
        }
    }

    /// Goes on from the nearest node.
    fn step(&mut self, neighbours: &Neighbours, shunned: &BTreeMap<u32, f32>) {
        let Some(Reverse(next)) = self.reached.pop() else {
            self.known = f32::INFINITY;
            return;
        };
        let (remaining, node) = (f32::from_bits((next >> 32) as u32), next as u32);
        if remaining > self.way(node).remaining {
            return;
        }
        self.known = remaining;
        let remaining = remaining + shunned.get(&node).copied().unwrap_or(0.0);
        for &(other, length) in &neighbours[node as usize] {
            self.offer(other, Way { remaining: remaining + length, next: Some(node) });
        }
    }

    fn offer(&mut self, node: u32, way: Way) {
        let known = &mut self.ways[node as usize];
        if way.remaining < known.remaining {
            *known = way;
            // The bits of lengths from 0 up are in the order of the lengths.
            let length = u64::from((way.remaining + 0.0).to_bits());
            self.reached.push(Reverse(length << 32 | u64::from(node)));
        }
    }
}

/// Which nodes are of the largest set of nodes that all have ways to each other.
pub(crate) fn together(nodes: usize, links: &[(u32, u32, f32)]) -> Vec<bool> {
    let [into, onto] = by_ends(nodes, links);
    let (mut left, mut undecided) = (vec![true; nodes], nodes);
    let (mut most, mut largest) = (0, vec![false; nodes]);
    for node in 0..nodes {
        if undecided <= most {
            break;
        }
        if left[node] {
            let (there, back) = (reachable(&onto, node), reachable(&into, node));
            let set: Vec<bool> = there.into_iter().zip(back).map(|(a, b)| a && b).collect();
            left.iter_mut().zip(&set).for_each(|(left, of)| *left &= !of);
            let size = set.iter().filter(|of| **of).count();
            undecided -= size;
            if size > most {
                (most, largest) = (size, set);
            }
        }
    }
    largest
}

/// Which nodes links lead to from one of them, itself included.
fn reachable(neighbours: &Neighbours, from: usize) -> Vec<bool> {
    let mut reached = vec![false; neighbours.len()];
    reached[from] = true;
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &(other, _) in &neighbours[node] {
            if !std::mem::replace(&mut reached[other as usize], true) {
                open.push(other as usize);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_may_have_something_left_to_go() {
        // 0 -> 1 -> 2 and a detour 0 -> 3 -> 2; 4 is alone.
        let links = [(0, 1, 1.0), (1, 2, 1.0), (0, 3, 0.25), (3, 2, 0.5)];
        let [into, onto] = by_ends(5, &links);
        let none = BTreeMap::new();
        let ways = shortest(&into, &[(2, 0.0)], &none);
        let found: Vec<_> = ways.iter().map(|way| way.remaining).collect();
        assert_eq!(found, [0.75, 1.0, 0.0, 0.5, f32::INFINITY]);
        assert_eq!(ways[0].next, Some(3));
        let ways = shortest(&into, &[(2, 3.0), (1, 0.5)], &none);
        assert_eq!((ways[0].remaining, ways[0].next), (1.5, Some(1)));
        assert_eq!(shortest(&onto, &[(0, 0.0)], &none)[2].remaining, 0.75);
        // Nothing to go is the least there is, whatever its sign.
        let ways = shortest(&into, &[(2, -0.0), (1, 0.0)], &none);
        assert_eq!((ways[0].remaining, ways[0].next), (0.75, Some(3)));
        // Not over 3 if it is shunned.
        let ways = shortest(&into, &[(2, 0.0)], &BTreeMap::from([(3, 2.0)]));
        assert_eq!((ways[0].remaining, ways[0].next), (2.0, Some(1)));
        assert_eq!(ways[3].remaining, 0.5);
    }

    #[test]
    fn ways_asked_for_are_those_of_a_whole_search() {
        // A grid of ten by ten whose links differ, each way; the last node is alone.
        let length = |a: u32, b: u32| 1.0 + ((a * 31 + b * 17) % 7) as f32;
        let mut links = Vec::new();
        for node in 0..100 {
            let right = (node % 10 < 9).then_some(node + 1);
            for other in right.into_iter().chain((node < 90).then_some(node + 10)) {
                links.push((node, other, length(node, other)));
                links.push((other, node, length(other, node)));
            }
        }
        let [into, _] = by_ends(101, &links);
        let (ends, shunned) = ([(44, 0.5), (45, 2.0)], BTreeMap::from([(54, 3.0), (12, 1.0)]));
        let wanted = shortest(&into, &ends, &shunned);
        let mut search = Search::new(101, &ends);
        assert!(search.has_ways() && !Search::new(101, &[]).has_ways());
        for some in [vec![45, 55], vec![], vec![12, 46, 99], vec![0], vec![3, 100]] {
            search.find(&into, &shunned, some.iter().copied());
            assert!(some.iter().all(|&node| search.way(node) == wanted[node as usize]));
            let left = (0..101).filter(|&node| search.way(node) != wanted[node as usize]);
            assert_eq!(left.count() == 0, some.contains(&100) || search.reached.is_empty());
        }
    }

    #[test]
    fn the_largest_set_that_is_joined_both_ways() {
        // A ring of three that leads into a ring of two; 5 leads in, 6 is alone.
        let links = [(0, 3), (3, 1), (1, 0), (1, 2), (2, 4), (4, 2), (5, 0)];
        let links = links.map(|(from, to)| (from, to, 1.0));
        let set = together(7, &links);
        assert_eq!(set, [true, true, false, true, false, false, false]);
        assert_eq!(together(0, &[]), Vec::<bool>::new());
        assert_eq!(together(2, &[]), [true, false]);
    }
}
