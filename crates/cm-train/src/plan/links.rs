//! Which nodes of a road map are linked, by what trajectories did there.

use std::collections::BTreeSet;

use super::cover::Cover;
use super::l2;

/// Trajectories as rows, each of which a node stands for.
pub(super) struct Passages<'a> {
    pub(super) found: &'a Cover,
    /// The rows, of `width` numbers that vary alike.
    pub(super) states: &'a [f32],
    pub(super) width: usize,
    /// Where each trajectory ends.
    pub(super) ends: &'a [usize],
    /// Rows after which luck decided where the trajectory went on.
    pub(super) thrown: &'a BTreeSet<usize>,
    /// How many rows ahead the policy is sent.
    pub(super) lag: usize,
}

/// The data streams where what trajectories move by in half the steps sums up to this share of how
/// far they move, and a link is against the stream if it leads back by this share of its length.
const STRONG: f32 = 0.6;
const BACKWARDS: f32 = 0.3;
/// How much longer such a link is: a policy that tries is carried back again and again.
const AGAINST: f32 = 20.0;
/// The most that a link is longer for what is lost at its end.
const MOST_LOST: f32 = 20.0;
/// A link that two others replace at so many times its length is left out.
const DETOUR: f32 = 1.1;

/// What trajectories move by from about a node, in all, and how far they move.
#[derive(Clone)]
struct Stream {
    sum: Vec<f32>,
    length: f32,
}

/// What trajectories did at nodes.
struct Counts {
    /// Passages that can be followed for as long as the policy is sent ahead.
    passed: Vec<u32>,
    /// Passages that were thrown elsewhere before that.
    lost: Vec<u32>,
    /// Which nodes any passage of another came to.
    seen: BTreeSet<(u32, u32)>,
}

impl Passages<'_> {
    fn count(&self) -> Counts {
        let count = self.found.nodes.len();
        let seen = BTreeSet::new();
        let mut counts = Counts { passed: vec![0; count], lost: vec![0; count], seen };
        let mut start = 0;
        for &end in self.ends {
            for row in start..end {
                let from = self.found.nearest[row];
                let last = end.min(row + 1 + self.lag);
                let thrown = self.thrown.range(row..last).next().filter(|&&at| at + 1 < last);
                let until = thrown.map_or(last, |&at| at + 1);
                let ahead = &self.found.nearest[row + 1..until];
                counts.seen.extend(ahead.iter().map(|&to| (from, to)));
                counts.lost[from as usize] += u32::from(thrown.is_some());
                let followed = thrown.is_some() || last == row + 1 + self.lag;
                counts.passed[from as usize] += u32::from(followed);
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
        let streams = self.streams(distances, link);
        for (from, distances) in distances.chunks_exact(count).enumerate() {
            let others = || (0..count).filter(|&to| to != from);
            let near = others().filter(|&to| distances[to] <= link).count();
            let well_known = counts.passed[from] as usize >= near;
            for to in others() {
                let pair = (from as u32, to as u32);
                let linked = match counts.seen.contains(&pair) {
                    true => distances[to] <= reach,
                    false => distances[to] <= link && !well_known,
                };
                if linked {
                    let flow = if self.against(&streams[from], pair) { AGAINST } else { 1.0 };
                    lengths[from * count + to] = distances[to] * flow * counts.thrown(to);
                }
            }
        }
        needed(&lengths, count)
    }

    /// Where trajectories go from about each node.
    fn streams(&self, distances: &[f32], link: f32) -> Vec<Stream> {
        let count = self.found.nodes.len();
        let rows = (self.lag / 2).max(1);
        let mut own = vec![Stream { sum: vec![0.0; self.width], length: 0.0 }; count];
        let mut start = 0;
        for &end in self.ends {
            for row in start..end.saturating_sub(rows).max(start) {
                if self.thrown.range(row..row + rows).next().is_none() {
                    let (from, to) = (self.state(row), self.state(row + rows));
                    let stream = &mut own[self.found.nearest[row] as usize];
                    let moved = to.iter().zip(from).map(|(to, from)| to - from);
                    stream.sum.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved);
                    stream.length += l2(from, to);
                }
            }
            start = end;
        }
        let about = |node: usize| {
            let mut stream = own[node].clone();
            for (other, of) in own.iter().enumerate().filter(|(other, _)| *other != node) {
                let apart = distances[node * count + other].max(distances[other * count + node]);
                if apart <= link {
                    stream.sum.iter_mut().zip(&of.sum).for_each(|(sum, of)| *sum += of);
                    stream.length += of.length;
                }
            }
            stream
        };
        (0..count).map(about).collect()
    }

    /// Whether a link goes against the stream at its beginning.
    fn against(&self, stream: &Stream, (from, to): (u32, u32)) -> bool {
        let [from, to] = [from, to].map(|node| self.state(self.found.nodes[node as usize]));
        let along = to.iter().zip(from).zip(&stream.sum).map(|((to, from), sum)| (to - from) * sum);
        let drift = stream.sum.iter().map(|sum| sum * sum).sum::<f32>().sqrt();
        let against = -along.sum::<f32>();
        drift > STRONG * stream.length && against > BACKWARDS * drift * l2(from, to)
    }

    /// A row as the model sees it.
    fn state(&self, row: usize) -> &[f32] {
        &self.states[row * self.width..][..self.width]
    }
}

impl Counts {
    /// How many times longer links to a node are for the passages that were thrown elsewhere.
    fn thrown(&self, to: usize) -> f32 {
        let lost = self.lost[to] as f32 / self.passed[to].max(1) as f32;
        1.0 / (1.0 - lost).max(1.0 / MOST_LOST)
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
    use std::collections::BTreeMap;

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
        // Behind the rows of trajectories are those of the nodes.
        let away = vec![0.0; nearest.len()];
        let states: Vec<f32> =
            nearest.iter().copied().chain(0..nodes as u32).map(|at| at as f32).collect();
        let nodes_at = (nearest.len()..states.len()).collect();
        let found = Cover { nodes: nodes_at, nearest, away };
        let thrown = thrown.iter().copied().collect();
        let distances: Vec<f32> =
            (0..nodes * nodes).map(|pair| (pair / nodes).abs_diff(pair % nodes) as f32).collect();
        let passages = Passages {
            found: &found,
            states: &states,
            width: 1,
            ends: &ends,
            thrown: &thrown,
            lag,
        };
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
        // None ever left 2, but about it all go on.
        assert_eq!(links[&(2, 1)], AGAINST);
        assert!(!links.contains_key(&(0, 2)));
        // As many come back.
        walks.extend(vec![&[2, 1, 0][..]; 10]);
        assert!(linked(3, &walks, &[], 1, [1.0, 1.0]).values().all(|length| *length == 1.0));
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
