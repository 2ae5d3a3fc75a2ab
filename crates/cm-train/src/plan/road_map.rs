//! Far distances composed of near ones.

use std::collections::BTreeMap;

use cm_nn::check::positive;
use serde::{Deserialize, Serialize};

use super::graph::{Neighbours, Search, Way, by_ends, shortest};
use super::measure::{Measure, Points};
use super::{GreedyPath, Trust, l2};
use crate::{Model, Result};

/// Which places are linked in a [`RoadMap`] of given places.
///
/// ```
/// use cm_train::Links;
///
/// // Neighbours at most one and a half units and one nat apart.
/// let links = Links { radius: 1.5, longest: 1.0 };
/// assert!(links.radius > 0.0 && links.longest > 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// How far apart places may be, in the state's own units.
    pub radius: f32,
    /// How far apart they may be by the learned distance.
    pub longest: f32,
}

/// States, and the learned distances along links between them.
///
/// A distance learned by contrast is sharp where states follow each other in the data, within a few
/// nats; how far *very* far is, the data hardly say. Because a quasimetric's distances add up, the
/// short ones are enough: the way from a place is the shortest chain of links. Greedy paths by that
/// distance never stop half way, and go the way the data went.
///
/// The distance is the method's own between states, or the one with zeros where actions belong.
///
/// [`of_data`](Self::of_data) chooses states and links by the data, to be walked:
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use cm_envs::Rollout;
/// use cm_train::{Device, Method, Model, PlanSettings, RoadMap, RunFolder, RunSettings, train};
///
/// // A barely trained model.
/// let settings = RunSettings::tiny_plane(Method::Cmd1, 0);
/// let folder = tempfile::tempdir().unwrap();
/// let folder = RunFolder::new(folder.path().join("run"));
/// let task = settings.task.open()?;
/// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
///
/// let model = Model::load(&folder, false)?;
/// let settings = PlanSettings { nodes: 100, ..Default::default() };
/// let map = RoadMap::of_data(&model, &task, &settings)?;
/// assert!(map.nodes().len() <= 100 * 2 && map.links().len() > 0 && map.is_of(&settings));
/// let [longest_link, sent_ahead] = map.lengths();
/// assert!(longest_link <= sent_ahead);
///
/// // It is kept beside the model, and refused for any other.
/// let file = folder.map_file(false);
/// map.save(&file)?;
/// assert_eq!(RoadMap::load(&file, &model, &task)?, map);
///
/// // The shortest way to a state, and the policy walking the map.
/// let path = &map.paths(&model, &[-20.0, 0.0], &[20.0, 0.0])?[0];
/// assert!(path.distances[0] > 0.0);
/// let plan = Rollout { episodes: 4, seed: 0, paths: 0 };
/// let walked = model.evaluate_on(&map, task.world()?, &plan)?;
/// assert_eq!(walked.outcomes.len(), 4);
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RoadMap {
    pub(super) width: usize,
    /// Whole states, one after another, in their own units.
    pub(super) nodes: Vec<f32>,
    /// From, to, length.
    pub(super) links: Vec<(u32, u32, f32)>,
    pub(super) rule: Rule,
    /// What it was made of; nothing if places were given.
    pub(super) origin: Option<super::file::Origin>,
    /// How far its distance is trusted; nothing if places were given.
    pub(super) trust: Option<Trust>,
    into: Neighbours,
    onto: Neighbours,
}

/// How a state that is no node is linked, and how far the policy is sent.
#[derive(
    Clone, Copy, Debug, PartialEq, Serialize, Deserialize, bincode::Encode, bincode::Decode,
)]
pub(crate) struct Rule {
    /// The longest link.
    pub(crate) link: f32,
    /// How far ahead the policy is sent.
    pub(crate) reach: f32,
    /// In how many steps trajectories cover that.
    pub(crate) steps: u32,
    /// Links are between places so near in their own units; if absent they are those that the data
    /// does not contradict.
    pub(crate) radius: Option<f32>,
    /// Whether the nodes do not cover the data, so that distances from a state say which node is
    /// nearer, but not how near.
    pub(crate) noisy: bool,
}

impl RoadMap {
    /// Links `places`, whole states one after another, by distance alone.
    pub fn new(model: &Model, places: &[f32], links: Links) -> Result<Self> {
        positive("radius", links.radius)?;
        positive("link", links.longest)?;
        let measure = Measure::new(model)?;
        let width = model.dimensions().state();
        model.check_rows("places", places.len(), width)?;
        let points = measure.points(places)?;
        let mut found = Vec::new();
        let place = |index: usize| &places[index * width..][..width];
        let count = places.len() / width;
        for (from, distances) in measure.pairs(&points, &points)?.chunks_exact(count).enumerate() {
            for (to, &length) in distances.iter().enumerate() {
                let near = length <= links.longest && l2(place(from), place(to)) <= links.radius;
                if from != to && near {
                    found.push((from as u32, to as u32, length));
                }
            }
        }
        let (radius, link) = (Some(links.radius), links.longest);
        let rule = Rule { link, reach: link, steps: 0, radius, noisy: false };
        Ok(Self::with_links(width, places.to_vec(), found, rule))
    }

    pub(super) fn with_links(
        width: usize,
        nodes: Vec<f32>,
        links: Vec<(u32, u32, f32)>,
        rule: Rule,
    ) -> Self {
        let [into, onto] = by_ends(nodes.len() / width, &links);
        Self { width, nodes, links, rule, origin: None, trust: None, into, onto }
    }

    /// Its states, whole and one after another, in their own units.
    pub fn nodes(&self) -> &[f32] {
        &self.nodes
    }

    /// Its links: from which node to which, and how long by the learned distance.
    pub fn links(&self) -> &[(u32, u32, f32)] {
        &self.links
    }

    /// The longest link, and how far ahead a policy is sent, by the learned distance.
    pub fn lengths(&self) -> [f32; 2] {
        [self.rule.link, self.rule.reach]
    }

    /// How far the distance is trusted, by trajectories that the map was not made of; nothing if
    /// places were given.
    pub fn trust(&self) -> Option<&Trust> {
        self.trust.as_ref()
    }

    /// Plans from each start, whole states one after another, to one goal.
    pub fn paths(&self, model: &Model, starts: &[f32], goal: &[f32]) -> Result<Vec<GreedyPath>> {
        model.check_rows("goal", goal.len(), self.width)?;
        model.check_rows("starts", starts.len(), self.width)?;
        if goal.len() != self.width {
            let (what, expected) = ("goal".to_owned(), self.width);
            return Err(crate::Error::Width { what, expected, found: goal.len() });
        }
        let measure = Measure::new(model)?;
        let nodes = measure.points(&self.nodes)?;
        let (start_points, goal_point) = (measure.points(starts)?, measure.points(goal)?);
        let direct = measure.pairs(&start_points, &goal_point)?;
        let ends = self.ends(&measure, &nodes, goal, &goal_point)?.remove(0);
        let ways = self.ways(&ends, &BTreeMap::new());
        let entries = self.entries(&measure, &nodes, starts, &start_points)?;
        let starts = starts.chunks_exact(self.width).zip(direct).zip(entries);
        Ok(starts
            .map(|((start, direct), near)| self.follow(&ways, start, direct, &near, goal))
            .collect())
    }

    /// The shortest way from every node, given the last links, and what is added to links to nodes
    /// that are shunned.
    pub(super) fn ways(&self, ends: &[(u32, f32)], shunned: &BTreeMap<u32, f32>) -> Vec<Way> {
        shortest(&self.into, ends, shunned)
    }

    /// The same ways, of which none is found yet.
    pub(super) fn search(&self, ends: &[(u32, f32)]) -> Search {
        Search::new(self.into.len(), ends)
    }

    /// Finds the ways from some nodes, with the same shunned nodes each time.
    pub(super) fn find_ways(
        &self,
        ways: &mut Search,
        shunned: &BTreeMap<u32, f32>,
        nodes: impl IntoIterator<Item = u32>,
    ) {
        ways.find(&self.into, shunned, nodes);
    }

    /// For each goal the nodes that it can be reached from, and how far it is from there.
    pub(super) fn ends(
        &self,
        measure: &Measure<'_>,
        nodes: &Points,
        goals: &[f32],
        points: &Points,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let there = measure.pairs(points, nodes)?;
        let count = nodes.rows();
        let back = transposed(&measure.pairs(nodes, points)?, count);
        Ok(self.near_by(goals, &there, &back, true))
    }

    /// For each start the nodes that can be reached from it, and how far they are.
    pub(super) fn entries(
        &self,
        measure: &Measure<'_>,
        nodes: &Points,
        starts: &[f32],
        points: &Points,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        let there = measure.pairs(points, nodes)?;
        let back = transposed(&measure.pairs(nodes, points)?, nodes.rows());
        Ok(self.near_by(starts, &there, &back, false))
    }

    /// For each state the nodes that lead to it if these are `ends`, else those that it leads to, by
    /// the distances from it to every node and `to` it from there.
    pub(super) fn near_by(
        &self,
        states: &[f32],
        from: &[f32],
        to: &[f32],
        ends: bool,
    ) -> Vec<Vec<(u32, f32)>> {
        match ends {
            true => self.near(states, to, from, &self.into),
            false => self.near(states, from, to, &self.onto),
        }
    }

    /// The nodes from which links lead to a node if it is one of the `ends`, else those to which
    /// they lead from it.
    pub(super) fn linked(&self, node: u32, ends: bool) -> impl Iterator<Item = u32> {
        let neighbours = if ends { &self.into } else { &self.onto };
        neighbours[node as usize].iter().map(|&(other, _)| other)
    }

    /// For each state the nodes that a link may join it with, and the length `along` that link;
    /// `against` is the distance in the other direction.
    fn near(
        &self,
        states: &[f32],
        along: &[f32],
        against: &[f32],
        neighbours: &Neighbours,
    ) -> Vec<Vec<(u32, f32)>> {
        let count = self.into.len();
        let rows = along.chunks_exact(count).zip(against.chunks_exact(count));
        let of = |(state, (along, against)): (&[f32], (&[f32], &[f32]))| match self.rule.radius {
            Some(radius) => (0..count)
                .filter(|&node| l2(self.node(node), state) <= radius)
                .filter(|&node| along[node] <= self.rule.link)
                .map(|node| (node as u32, along[node]))
                .collect(),
            // The node that stands for the state, and those that are linked with it.
            None => {
                let far = |node: usize| along[node].max(against[node]);
                let own = (0..count).fold(0, |a, b| if far(b) < far(a) { b } else { a });
                let linked = neighbours[own].iter().map(|&(node, _)| node);
                let linked = linked.filter(|&node| along[node as usize] <= self.rule.link);
                let near = |&own: &u32| self.rule.noisy || along[own as usize] <= self.rule.reach;
                let own = Some(own as u32).filter(near);
                own.into_iter().chain(linked).map(|node| (node, along[node as usize])).collect()
            }
        };
        states.chunks_exact(self.width).zip(rows).map(of).collect()
    }

    /// From a start to the best node that it is linked to, or to the goal itself, and on from there.
    fn follow(
        &self,
        ways: &[Way],
        start: &[f32],
        direct: f32,
        near: &[(u32, f32)],
        goal: &[f32],
    ) -> GreedyPath {
        let mut best = Way { remaining: f32::INFINITY, next: None };
        if self.rule.radius.is_none_or(|radius| l2(start, goal) <= radius)
            && direct <= self.rule.link
        {
            best.remaining = direct;
        }
        for &(node, length) in near {
            let remaining = length + ways[node as usize].remaining;
            if remaining < best.remaining {
                best = Way { remaining, next: Some(node) };
            }
        }
        let mut path = GreedyPath::starting(start, best.remaining);
        if best.remaining.is_infinite() {
            path.distances[0] = direct;
            return path;
        }
        // Start and goal may be among the nodes: no state twice in a row.
        let mut go = |state: &[f32], remaining| {
            if path.states.last().is_none_or(|last| last != state) {
                path.push(state, remaining);
            }
        };
        let mut next = best.next;
        while let Some(node) = next {
            go(self.node(node as usize), ways[node as usize].remaining);
            next = ways[node as usize].next;
        }
        go(goal, 0.0);
        path.arrived = true;
        path
    }

    pub(super) fn node(&self, node: usize) -> &[f32] {
        &self.nodes[node * self.width..][..self.width]
    }
}

/// Rows of `columns` each become columns.
fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows.max(1);
    let column = |column: usize| (0..rows).map(move |row| values[row * columns + column]);
    (0..columns).flat_map(column).collect()
}
