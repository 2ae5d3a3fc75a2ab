//! Ways that the data took, and the learned distances along them.

use std::collections::BTreeMap;

use cm_nn::{Matrix, Snapshot};
use cm_replay::{Dataset, Split};
use rayon::prelude::*;

use super::graph::{Neighbours, Way, by_ends, shortest};
use crate::check::rank_correlation;
use crate::finish::held_out_pairs;
use crate::{Error, Result};

/// States of the data, and links between them that some trajectory took, each as long as the
/// learned distance says.
///
/// Every state stands for those nearest to it. A link leads from one to another if a trajectory
/// went from a state of the first to a state of the second within a few steps, so that no link goes
/// against what the data shows. Because the learned distance is a quasimetric, the shortest way is
/// never shorter than it; and the shortest way is a quasimetric itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Roads {
    width: usize,
    /// Scaled states, one after another.
    nodes: Vec<f32>,
    /// From, to, length.
    links: Vec<(u32, u32, f32)>,
    into: Neighbours,
    onto: Neighbours,
}

/// Most nodes, and the fewest that are worth having.
const MOST_NODES: usize = 1_500;
const FEWEST_NODES: usize = 12;
/// Most rows of the data that links are taken from.
const MOST_ROWS: usize = 50_000;
/// Rows of the data for each node, if nothing is held out to choose by.
const ROWS_EACH: usize = 40;
/// The share of ways along held-out trajectories that the links must have.
const COVERED: f64 = 0.98;
/// How much worse than the best a larger number of nodes may do.
const SLACK: f64 = 0.005;
/// Held-out goals that are looked at, and starts for each.
const GOALS: usize = 60;
const STARTS: usize = 30;

impl Roads {
    /// Links of at most `horizon` steps; none if trajectories hardly meet. `lengths` gives the
    /// learned distances of pairs of rows of states.
    ///
    /// How many states there are is chosen by the trajectories that are held out: too few, and
    /// what lies just behind a state is taken for it; too many, and hardly two trajectories meet,
    /// so that short ways are missing. It is the largest number under which the ways order held-out
    /// states by time about as well as under any.
    pub(crate) fn of_data(
        data: &Dataset,
        split: &Split,
        horizon: usize,
        lengths: impl Fn(&[f32], &[(u32, u32)]) -> Result<Vec<f32>>,
    ) -> Result<Option<Self>> {
        let every = data.steps().div_ceil(MOST_ROWS).max(1);
        let walks: Vec<_> = split.training.iter().copied().step_by(every).collect();
        let rows = walks.iter().flat_map(|&walk| data.trajectory(walk)).collect::<Vec<_>>();
        let pairs = held_out_pairs(data, split, GOALS, STARTS);
        let make = |count: usize| -> Result<Self> {
            let chosen = (0..count).map(|number| rows[number * rows.len() / count]);
            let nodes: Vec<f32> =
                chosen.flat_map(|row| data.observations().row(row).to_vec()).collect();
            let bare = Self::with_links(data.observations().columns(), nodes, Vec::new());
            let pairs = bare.pairs(data, &walks, horizon);
            let found = lengths(&bare.nodes, &pairs)?;
            let links = pairs.iter().zip(found).map(|(&(from, to), length)| (from, to, length));
            Ok(Self::with_links(bare.width, bare.nodes, links.collect()))
        };
        if pairs.is_empty() {
            let count = (rows.len() / ROWS_EACH).clamp(1, MOST_NODES);
            return make(count).map(Some);
        }
        let mut tried = Vec::new();
        let mut count = MOST_NODES.min(rows.len());
        while count >= FEWEST_NODES.min(rows.len()) {
            let roads = make(count)?;
            if let Some(score) = roads.score(data, &pairs) {
                tried.push((score, roads));
            }
            count /= 2;
        }
        let best = tried.iter().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        let good = tried.into_iter().find(|(score, _)| *score >= best - SLACK);
        Ok(good.map(|(_, roads)| roads))
    }

    fn with_links(width: usize, nodes: Vec<f32>, links: Vec<(u32, u32, f32)>) -> Self {
        let [into, onto] = by_ends(nodes.len() / width, &links);
        Self { width, nodes, links, into, onto }
    }

    /// Pairs of different nodes that trajectories passed one after the other, within the horizon;
    /// sorted, each once.
    fn pairs(&self, data: &Dataset, walks: &[usize], horizon: usize) -> Vec<(u32, u32)> {
        let of_walk = |&walk: &usize| {
            let rows = data.trajectory(walk);
            let passed: Vec<u32> =
                rows.map(|row| self.nearest(data.observations().row(row)) as u32).collect();
            let mut pairs = Vec::new();
            for (at, &from) in passed.iter().enumerate() {
                let ahead = passed[at + 1..].iter().take(horizon);
                pairs.extend(ahead.filter(|&&to| to != from).map(|&to| (from, to)));
            }
            pairs
        };
        let mut pairs: Vec<_> = walks.par_iter().flat_map_iter(of_walk).collect();
        pairs.par_sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The rank correlation of ways and steps over pairs of held-out rows; none if too many pairs
    /// have no way.
    fn score(&self, data: &Dataset, pairs: &[(usize, usize)]) -> Option<f64> {
        let node = |row: usize| self.nearest(data.observations().row(row));
        let goals: Vec<&[(usize, usize)]> = pairs.chunk_by(|a, b| a.1 == b.1).collect();
        let found: Vec<(f64, f64)> = goals
            .par_iter()
            .flat_map_iter(|pairs| {
                let ways = self.ways_to(node(pairs[0].1));
                let way = move |&(from, to): &(usize, usize)| {
                    (f64::from(ways[node(from)].remaining), (to - from) as f64)
                };
                pairs.iter().map(way).collect::<Vec<_>>()
            })
            .collect();
        let there = found.iter().filter(|(way, _)| way.is_finite()).count();
        let (ways, steps): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
        let covered = there as f64 >= COVERED * ways.len() as f64;
        covered.then(|| rank_correlation(&ways, &steps))
    }

    /// The node that stands for a scaled state.
    pub(crate) fn nearest(&self, state: &[f32]) -> usize {
        let square =
            |node: &[f32]| node.iter().zip(state).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let mut best = (f32::INFINITY, 0);
        for (index, node) in self.nodes.chunks_exact(self.width).enumerate() {
            let found = square(node);
            if found < best.0 {
                best = (found, index);
            }
        }
        best.1
    }

    /// A node's scaled state.
    pub(crate) fn node(&self, node: usize) -> &[f32] {
        &self.nodes[node * self.width..][..self.width]
    }

    /// The shortest way from every node to one; infinite where there is none.
    pub(crate) fn ways_to(&self, goal: usize) -> Vec<Way> {
        shortest(&self.into, &[(goal as u32, 0.0)], &BTreeMap::new())
    }

    /// The shortest way from one node to every other, backwards: `next` is the node before.
    pub(crate) fn ways_from(&self, start: usize) -> Vec<Way> {
        shortest(&self.onto, &[(start as u32, 0.0)], &BTreeMap::new())
    }

    /// How many states and links there are.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use cm_envs::walks::Course;
    /// use cm_train::{Device, Method, Model, RunFolder, RunSettings, train};
    ///
    /// // A barely trained model of a ring that is walked one way.
    /// let scratch = tempfile::tempdir().unwrap();
    /// let file = scratch.path().join("ring.csv");
    /// std::fs::write(&file, Course::Ring.collect(20, 60, 0)?.to_csv()).unwrap();
    /// let settings = RunSettings { steps: 2, ..RunSettings::own_data(Method::Cmd1, file) };
    /// let (folder, task) = (RunFolder::new(scratch.path().join("run")), settings.task.open()?);
    /// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
    ///
    /// // Every state has a way on.
    /// let model = Model::load(&folder, true)?;
    /// let (states, links) = model.roads().unwrap().size();
    /// assert!(states >= 12 && links >= states, "{states} {links}");
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn size(&self) -> (usize, usize) {
        (self.into.len(), self.links.len())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let count = self.into.len();
        // Node numbers are far below 2^24, so that they are exact.
        let links: Vec<f32> = self
            .links
            .iter()
            .flat_map(|&(from, to, length)| [from as f32, to as f32, length])
            .collect();
        [
            ("nodes".to_owned(), Matrix { shape: [count, self.width], values: self.nodes.clone() }),
            ("links".to_owned(), Matrix { shape: [links.len() / 3, 3], values: links }),
        ]
        .into_iter()
        .collect()
    }

    /// None if the matrices are not those of [`snapshot`](Self::snapshot) for states of this width.
    pub(crate) fn from_matrices(nodes: &Matrix, links: &Matrix, width: usize) -> Result<Self> {
        let count = nodes.shape[0];
        let refuse = || Error::Width {
            what: "links over the data".to_owned(),
            expected: width,
            found: nodes.shape[1],
        };
        if nodes.shape[1] != width || links.shape[1] != 3 || count == 0 {
            return Err(refuse());
        }
        let node = |number: f32| {
            let fits = number >= 0.0 && number < count as f32 && number.fract() == 0.0;
            fits.then_some(number as u32)
        };
        let links: Option<Vec<_>> = links
            .values
            .as_chunks::<3>()
            .0
            .iter()
            .map(|&[from, to, length]| {
                Some((node(from)?, node(to)?, Some(length).filter(|length| *length >= 0.0)?))
            })
            .collect();
        Ok(Self::with_links(width, nodes.values.clone(), links.ok_or_else(refuse)?))
    }
}

#[cfg(test)]
mod tests {
    use cm_replay::Matrix as Rows;

    use super::*;

    /// Walks to the right along a line, and none back.
    fn line(walks: usize) -> Dataset {
        let numbers: Vec<f32> =
            (0..walks).flat_map(|walk| (0..10).map(move |x| (x + walk % 5) as f32)).collect();
        let rows = || Rows::from_vec(numbers.len(), 1, numbers.clone()).unwrap();
        Dataset::new(rows(), rows(), (1..=walks).map(|walk| 10 * walk).collect()).unwrap()
    }

    #[test]
    fn links_go_with_the_data_and_ways_are_the_shortest() {
        let data = line(40);
        let split = Split { training: (0..39).collect(), validation: vec![39] };
        let apart = |nodes: &[f32], pairs: &[(u32, u32)]| {
            let at = |node: u32| nodes[node as usize];
            Ok(pairs.iter().map(|&(from, to)| (at(to) - at(from)).abs()).collect())
        };
        let roads = Roads::of_data(&data, &split, 3, apart).unwrap().unwrap();
        let node = |x: f32| roads.nearest(&[x]);
        for &(from, to, _) in &roads.links {
            let (from, to) = (roads.node(from as usize)[0], roads.node(to as usize)[0]);
            assert!(to > from && to <= from + 3.0, "{from} {to}");
        }
        // From 0 to 13 no walk went in one piece.
        let ways = roads.ways_to(node(13.0));
        assert_eq!(ways[node(0.0)].remaining, 13.0);
        assert!(roads.ways_to(node(0.0))[node(13.0)].remaining.is_infinite());
        assert_eq!(roads.ways_from(node(0.0))[node(13.0)].remaining, 13.0);
        let stored = roads.snapshot();
        let (nodes, links) = (stored.get("nodes").unwrap(), stored.get("links").unwrap());
        assert_eq!(Roads::from_matrices(nodes, links, 1).unwrap(), roads);
        assert!(Roads::from_matrices(nodes, links, 2).is_err());
    }

    /// Trajectories that never meet are joined by coarser states, or by none.
    #[test]
    fn a_single_state_is_no_map() {
        let rows = || Rows::from_vec(20, 1, vec![1.0; 20]).unwrap();
        let data = Dataset::new(rows(), rows(), vec![5, 10, 15, 20]).unwrap();
        let split = Split { training: vec![0, 1, 2], validation: vec![3] };
        let lengths = |_: &[f32], pairs: &[(u32, u32)]| Ok(vec![0.0; pairs.len()]);
        let roads = Roads::of_data(&data, &split, 3, lengths).unwrap().unwrap();
        assert_eq!(roads.size().1, 0);
        assert_eq!(roads.ways_to(roads.nearest(&[7.0]))[roads.nearest(&[1.0])].remaining, 0.0);
    }
}
