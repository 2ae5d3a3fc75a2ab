//! Which nodes of a road map are linked, by what trajectories did there.

use std::collections::{BTreeMap, BTreeSet};

use super::cover::Cover;

/// Trajectories as rows, each of which a node stands for.
pub(super) struct Passages<'a> {
    pub(super) found: &'a Cover,
    /// Where each trajectory ends.
    pub(super) ends: &'a [usize],
    /// Rows after which luck decided where the trajectory went on.
    pub(super) thrown: &'a BTreeSet<usize>,
    /// How many rows ahead the policy is sent.
    pub(super) lag: usize,
}

/// A link is against the way the data goes if trajectories came back over it this much more often
/// than they went along it, and so often at least.
const FLOW: f32 = 3.0;
const FLOW_SEEN: u32 = 4;
/// How much longer such a link is: a policy that tries is carried back again and again.
const AGAINST: f32 = 20.0;
/// The most that a link is longer for what is lost at its end.
const MOST_LOST: f32 = 20.0;
/// A link that two others replace at so many times its length is left out.
const DETOUR: f32 = 1.1;

/// What trajectories did at nodes.
struct Counts {
    /// Passages that can be followed for as long as the policy is sent ahead.
    passed: Vec<u32>,
    /// Passages that were thrown elsewhere before that.
    lost: Vec<u32>,
    /// How many passages of a node came to another.
    came: BTreeMap<(u32, u32), u32>,
    /// In how few rows any passage of a node, followed as long as it lasts, came to another.
    seen: BTreeMap<(u32, u32), u32>,
}

impl Passages<'_> {
    fn count(&self) -> Counts {
        let count = self.found.nodes.len();
        let (came, seen) = (BTreeMap::new(), BTreeMap::new());
        let mut counts = Counts { passed: vec![0; count], lost: vec![0; count], came, seen };
        let mut start = 0;
        let mut ahead = Vec::new();
        for &end in self.ends {
            for row in start..end {
                let from = self.found.nearest[row];
                let last = end.min(row + 1 + self.lag);
                let thrown = self.thrown.range(row..last).next().filter(|&&at| at + 1 < last);
                ahead.clear();
                let until = thrown.map_or(last, |&at| at + 1);
                ahead.extend_from_slice(&self.found.nearest[row + 1..until]);
                for (rows, &to) in ahead.iter().enumerate() {
                    let least = counts.seen.entry((from, to)).or_insert(u32::MAX);
                    *least = (*least).min(rows as u32 + 1);
                }
                ahead.sort_unstable();
                ahead.dedup();
                counts.lost[from as usize] += u32::from(thrown.is_some());
                if thrown.is_some() || last == row + 1 + self.lag {
                    counts.passed[from as usize] += 1;
                    ahead.iter().for_each(|&to| *counts.came.entry((from, to)).or_default() += 1);
                }
            }
            start = end;
        }
        counts
    }

    /// Links by the distances of all pairs: those that trajectories took, if they are within
    /// `reach`, and those within `link` of which no trajectory speaks.
    ///
    /// A link against the way that the data goes is longer than the learned distance says, and so is
    /// one to where trajectories are thrown about.
    pub(super) fn links(&self, distances: &[f32], [link, reach]: [f32; 2]) -> Vec<(u32, u32, f32)> {
        let counts = self.count();
        let count = self.found.nodes.len();
        let mut lengths = vec![f32::INFINITY; count * count];
        for (from, distances) in distances.chunks_exact(count).enumerate() {
            let others = || (0..count).filter(|&to| to != from);
            let near = others().filter(|&to| distances[to] <= link).count();
            let well_known = counts.passed[from] as usize >= near;
            for to in others() {
                let pair = (from as u32, to as u32);
                let seen = counts.seen.get(&pair);
                let linked = match seen.is_some() {
                    true => distances[to] <= reach,
                    false => distances[to] <= link && !well_known,
                };
                if linked {
                    lengths[from * count + to] = distances[to] * counts.factor(pair);
                }
            }
        }
        needed(&lengths, count)
    }
}

impl Counts {
    /// How many times longer a link is than the learned distance says.
    fn factor(&self, (from, to): (u32, u32)) -> f32 {
        let came = |pair| self.came.get(&pair).copied().unwrap_or(0);
        let (along, back) = (came((from, to)), came((to, from)));
        let passed = |node: u32| self.passed[node as usize] as f32;
        // One more than there were, for those that were not looked at.
        let along = (along as f32 + 1.0) / (passed(from) + 1.0);
        let against = back >= FLOW_SEEN && back as f32 / passed(to) > FLOW * along;
        let lost = self.lost[to as usize] as f32 / passed(to).max(1.0);
        let flow = if against { AGAINST } else { 1.0 };
        flow / (1.0 - lost).max(1.0 / MOST_LOST)
    }
}

/// The links that no two others replace.
fn needed(lengths: &[f32], count: usize) -> Vec<(u32, u32, f32)> {
    let mut links = Vec::new();
    for (from, own) in lengths.chunks_exact(count).enumerate() {
        let mut order: Vec<usize> = (0..count).filter(|&to| own[to].is_finite()).collect();
        order.sort_by(|&a, &b| own[a].total_cmp(&own[b]).then(a.cmp(&b)));
        let mut kept: Vec<usize> = Vec::new();
        for to in order {
            let over = |&via: &usize| own[via] + lengths[via * count + to] <= DETOUR * own[to];
            if own[to] == 0.0 || !kept.iter().any(over) {
                kept.push(to);
            }
        }
        kept.sort_unstable();
        links.extend(kept.into_iter().map(|to| (from as u32, to as u32, own[to])));
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One-dimensional nodes at 0, 1, 2, ..., and trajectories as lists of nodes.
    fn linked(
        nodes: usize,
        walks: &[&[u32]],
        thrown: &[usize],
        lag: usize,
        lengths: [f32; 2],
    ) -> BTreeMap<(u32, u32), f32> {
        let nearest: Vec<u32> = walks.concat();
        let mut ends = Vec::new();
        walks.iter().for_each(|walk| ends.push(ends.last().unwrap_or(&0) + walk.len()));
        let away = vec![0.0; nearest.len()];
        let found = Cover { nodes: (0..nodes).collect(), nearest, away };
        let thrown = thrown.iter().copied().collect();
        let distances: Vec<f32> =
            (0..nodes * nodes).map(|pair| (pair / nodes).abs_diff(pair % nodes) as f32).collect();
        let passages = Passages { found: &found, ends: &ends, thrown: &thrown, lag };
        let links = passages.links(&distances, lengths);
        links.into_iter().map(|(from, to, length)| ((from, to), length)).collect()
    }

    #[test]
    fn against_the_way_the_data_goes_links_are_longer() {
        // Ten go from 0 to 2, one of them steps back once.
        let ahead: &[u32] = &[0, 1, 2];
        let mut walks = vec![ahead; 10];
        walks.push(&[1, 0, 1, 2]);
        let links = linked(3, &walks, &[], 1, [1.0, 1.0]);
        assert_eq!(links[&(0, 1)], 1.0);
        assert_eq!(links[&(1, 2)], 1.0);
        assert_eq!(links[&(1, 0)], AGAINST);
        // None ever left 2, so that nothing is known against going back from there.
        assert!(!links.contains_key(&(0, 2)) && links.contains_key(&(2, 1)));
    }

    #[test]
    fn what_two_links_replace_is_left_out() {
        let walks: &[&[u32]] = &[&[0, 1, 2, 3], &[3, 2, 1, 0]];
        let links = linked(4, walks, &[], 3, [1.0, 3.0]);
        let pairs: Vec<_> = links.keys().copied().collect();
        assert_eq!(pairs, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]);
    }

    #[test]
    fn what_luck_joined_is_no_link_and_its_door_is_far() {
        // From 1 trajectories are thrown to 5 or 6; others turn back.
        let walks: &[&[u32]] = &[&[0, 1, 5], &[0, 1, 6], &[0, 1, 0], &[0, 1, 0]];
        let links = linked(7, walks, &[1, 4], 1, [1.0, 10.0]);
        assert!(!links.contains_key(&(1, 5)) && !links.contains_key(&(1, 6)));
        assert!(links[&(0, 1)] > 1.9 && links[&(1, 0)] == 1.0, "{links:?}");
        let believed = linked(7, walks, &[], 1, [1.0, 10.0]);
        assert_eq!(believed[&(1, 5)], 4.0);
    }
}
