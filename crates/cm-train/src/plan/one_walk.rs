//! One episode that walks a road map.

use std::collections::BTreeMap;

use super::RoadMap;
use super::graph::Search;

/// How near a node is as good as reached, as a share of the longest link.
const REACHED: f32 = 0.25;

/// One episode on its way.
pub(super) struct Walk {
    /// The nodes that the goal can be reached from, and how far it is from there.
    ends: Vec<(u32, f32)>,
    /// Nodes that it could not be brought to, and how much longer links to them are for that.
    shunned: BTreeMap<u32, f32>,
    pub(super) ways: Search,
    /// The nodes to pass, and which of all goals is behind them.
    pub(super) path: Vec<u32>,
    pub(super) goal: usize,
    /// The place in the path that the policy is sent to; that behind the last node is the goal.
    pub(super) at: usize,
    /// The place that it is nearest to.
    stands: usize,
    /// If it was stuck: how far along the path it is sent, until it is past the node that it was sent
    /// to.
    pub(super) careful: Option<(f32, Option<u32>)>,
    /// The least distance to its target, and the steps since it was.
    pub(super) nearest: f32,
    pub(super) since: usize,
    /// Looks to leave out.
    pub(super) wait: usize,
    pub(super) planned: bool,
    /// How often it was without a way.
    pub(super) lost: usize,
    /// How many paths in a row were half way behind it at once.
    pub(super) dropped: usize,
    /// What was left of the way at the last look, and how many steps ago that was.
    pub(super) remaining: Option<(f32, usize)>,
}

impl Walk {
    /// Begins to one of the goals, which can be reached from `ends`.
    pub(super) fn new(map: &RoadMap, ends: Vec<(u32, f32)>, goal: usize) -> Self {
        let shunned = BTreeMap::new();
        Self {
            ways: map.search(&ends),
            ends,
            shunned,
            path: Vec::new(),
            goal,
            at: 0,
            stands: 0,
            careful: None,
            nearest: f32::INFINITY,
            since: 0,
            wait: 0,
            planned: false,
            lost: 0,
            dropped: 0,
            remaining: None,
        }
    }

    /// Takes the shortest way over one of the nodes nearby, if there is any.
    pub(super) fn take(&mut self, map: &RoadMap, near: &[(u32, f32)]) -> bool {
        let Some((left, entry)) = self.best(map, near) else { return false };
        // The node that it was sent to, if any, to see whether it is past it.
        map.find_ways(&mut self.ways, &self.shunned, self.careful.and_then(|(_, failed)| failed));
        let next = |&node: &u32| self.ways.way(node).next;
        self.path = std::iter::successors(Some(entry), next).collect();
        (self.at, self.stands, self.since, self.nearest) = (0, 0, 0, f32::INFINITY);
        let past = |node: u32| left <= self.ways.way(node).remaining;
        self.careful = self.careful.filter(|(_, failed)| !failed.is_some_and(past));
        if let Some((limit, _)) = self.careful {
            let mut places = (0..=self.path.len()).rev();
            let within = |&place: &usize| left - self.remaining_at(place) <= limit;
            self.at = places.find(within).unwrap_or(0);
        }
        self.planned = true;
        self.remaining = None;
        true
    }

    /// All nodes that have a way to the goal.
    pub(super) fn with_ways(&mut self, map: &RoadMap) -> Vec<bool> {
        let all = (0..).take(map.nodes().len() / map.width);
        map.find_ways(&mut self.ways, &self.shunned, all.clone());
        all.map(|node| self.ways.way(node).remaining.is_finite()).collect()
    }

    /// Whether any node has a way to the goal.
    pub(super) fn has_ways(&self) -> bool {
        self.ways.has_ways()
    }

    /// The shortest way over one of the nodes nearby: how long it is, and the node.
    pub(super) fn best(&mut self, map: &RoadMap, near: &[(u32, f32)]) -> Option<(f32, u32)> {
        map.find_ways(&mut self.ways, &self.shunned, near.iter().map(|&(node, _)| node));
        let shunned = |node| self.shunned.get(&node).copied().unwrap_or(0.0);
        let remaining = |node: u32| self.ways.way(node).remaining;
        let ways = near.iter().map(|&(node, d)| (d + shunned(node) + remaining(node), node));
        let best = ways.min_by(|a, b| a.0.total_cmp(&b.0));
        best.filter(|(remaining, _)| remaining.is_finite())
    }

    /// Steps until it may be half way to its target, which is so far, if it gets on as since the
    /// last look; from `least` to `most`.
    pub(super) fn until_half_way(&mut self, distance: f32, least: usize, most: usize) -> usize {
        let left = distance + self.remaining_at(self.at);
        let before = self.remaining.replace((left, 0));
        let pace = before.map_or(0.0, |(before, steps)| (before - left) / steps.max(1) as f32);
        match pace > 0.0 {
            // A cast saturates.
            true => ((0.5 * distance / pace) as usize).clamp(least, most.max(least)),
            false => least,
        }
    }

    /// The first place of the path that a look asks about.
    pub(super) fn first(&self, map: &RoadMap) -> usize {
        if map.rule.noisy { self.stands } else { self.at }
    }

    /// Moves on to the farthest place of the path, from the present one on, that is within `reach`;
    /// by one if the present one is as good as reached.
    pub(super) fn advance(&mut self, ahead: &[f32], [link, reach]: [f32; 2]) {
        let reached = usize::from(ahead.len() > 1 && ahead[0] <= REACHED * link);
        let farthest = ahead.iter().rposition(|distance| *distance <= reach).unwrap_or(0);
        self.at += farthest.max(reached);
    }

    /// Sends it on from the nearest place, where it stands, to the farthest one within `reach`; at
    /// least to the next one, and back if it was sent too far. For distances that only say which is
    /// nearer: those along the path add up what each node's posture is off by.
    pub(super) fn follow(&mut self, ahead: &[f32], reach: f32) {
        let nearer = |&a: &usize, &b: &usize| ahead[a].total_cmp(&ahead[b]);
        let nearest = (0..ahead.len()).min_by(nearer).unwrap_or(0);
        let next = (nearest + 1).min(ahead.len() - 1);
        let within = |place: &usize| ahead[*place] <= reach;
        let farthest = (next..ahead.len()).rev().find(within).unwrap_or(next);
        self.at = self.stands + farthest;
        self.stands += nearest;
    }

    /// Notes that it could not be brought to its target: it is sent less far until it is past it. If
    /// that is too far yet, even where it is hardly a link, it shuns the node; at once if distances
    /// do not say how near it is.
    pub(super) fn fail(&mut self, map: &RoadMap) {
        let (link, reach) = (map.rule.link, map.rule.reach);
        let node = self.path.get(self.at).copied();
        self.careful = match self.careful {
            _ if map.rule.noisy => {
                self.shun(node, map);
                None
            }
            None => Some((reach, node)),
            Some((limit, failed)) if limit > link => Some((0.5 * limit, failed)),
            Some((_, failed)) => {
                self.shun(node, map);
                Some((reach, failed))
            }
        };
    }

    /// Finds other ways than over a node.
    fn shun(&mut self, node: Option<u32>, map: &RoadMap) {
        if let Some(node) = node {
            *self.shunned.entry(node).or_default() += map.rule.reach;
            self.ways = map.search(&self.ends);
        }
    }

    /// What remains from a place of the path; 0 from the goal behind its last node.
    fn remaining_at(&self, place: usize) -> f32 {
        self.path.get(place).map_or(0.0, |&node| self.ways.way(node).remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::super::road_map::Rule;
    use super::*;

    /// A row of ten nodes, one apart; the goal is behind the last.
    fn row(noisy: bool) -> (RoadMap, Walk) {
        let rule = Rule { link: 1.0, reach: 3.0, steps: 3, radius: None, noisy };
        let links = (0..9).flat_map(|at| [(at, at + 1, 1.0), (at + 1, at, 1.0)]).collect();
        let map = RoadMap::with_links(1, (0..10).map(|at| at as f32).collect(), links, rule);
        let mut walk = Walk::new(&map, vec![(9, 1.0)], 0);
        assert!(walk.take(&map, &[(0, 1.0)]));
        assert_eq!(walk.path, (0..10).collect::<Vec<_>>());
        (map, walk)
    }

    #[test]
    fn distances_that_are_too_long_alike_lead_along_the_path() {
        // From the third node, in a posture that is `posture` from anything.
        let ahead = |first: usize, posture: f32| -> Vec<f32> {
            (first..first + 6).map(|place| posture + (place as f32 - 3.0).abs()).collect()
        };
        // Farther than it is ever sent, yet to the node behind, again and again.
        let (map, mut walk) = row(true);
        for _ in 0..3 {
            walk.follow(&ahead(walk.first(&map), 5.0), map.rule.reach);
            assert_eq!((walk.stands, walk.at), (3, 4));
        }
        // As far as it may be sent; no farther when it is in a worse posture again.
        walk.follow(&ahead(walk.first(&map), 1.0), map.rule.reach);
        assert_eq!((walk.stands, walk.at), (3, 5));
        walk.follow(&ahead(walk.first(&map), 5.0), map.rule.reach);
        assert_eq!((walk.stands, walk.at), (3, 4));
        // At the end of the path there is only the goal.
        walk.follow(&[1.0], map.rule.reach);
        assert_eq!((walk.stands, walk.at), (3, 3));
        // Taken at their word they lead nowhere.
        let (map, mut walk) = row(false);
        walk.advance(&ahead(walk.first(&map), 5.0), [map.rule.link, map.rule.reach]);
        assert_eq!(walk.at, 0);
    }

    #[test]
    fn a_node_that_it_cannot_be_brought_to_is_shunned() {
        let (mut map, mut walk) = row(true);
        let before = walk.ways.way(0).remaining;
        (walk.at, walk.stands) = (3, 0);
        walk.fail(&map);
        let (left, _) = walk.best(&map, &[(0, 0.0)]).unwrap();
        assert_eq!((walk.careful, left), (None, before + map.rule.reach));
        // It comes nearer first where distances say how near.
        map.rule.noisy = false;
        walk.fail(&map);
        assert_eq!(walk.careful, Some((map.rule.reach, Some(3))));
    }
}
