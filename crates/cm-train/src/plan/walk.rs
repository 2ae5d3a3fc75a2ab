//! A policy that walks a road map: sent from node to node instead of straight to its goal.

use super::find::{Nodes, find};
use super::measure::{Points, gather};
use super::one_walk::Walk;
use super::sight::{Sight, Spots};
use super::{RoadMap, l2};
use crate::Result;

/// What became of the plans of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Episodes that were without a way, from their beginning or later: no node reaches the goal, or
    /// none is near. Their policy went straight.
    pub no_way: usize,
    /// How often a new way was looked for, off the old one or where it was not getting on.
    pub replanned: usize,
}

/// How far off its target, in the place of how far it was sent, an episode is off its way.
const OFF: f32 = 1.5;
/// Nodes ahead that are looked at together.
const WINDOW: usize = 4;
/// Looks at where an episode is within the steps that the policy is sent ahead, where distances only
/// say which node is nearer. Else one is enough.
const LOOKS: usize = 2;
/// An episode that comes no nearer to its target in so many times the steps that it was sent ahead
/// is stuck. Where distances only say which node is nearer, half as many.
const PATIENCE: usize = 2;
/// How often the wait of an episode without a way is doubled, at most.
const LONGEST: usize = 4;
/// How many nodes of a large map are asked about where no link leads to one with a way.
const SOME: usize = 32;

/// Walks by the numbers of their episodes: so few that each is looked for among all.
#[derive(Default)]
struct Walks(Vec<(usize, Walk)>);

impl Walks {
    fn get(&self, number: usize) -> Option<&Walk> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, walk)| walk)
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut Walk> {
        self.0.iter_mut().find(|(known, _)| *known == number).map(|(_, walk)| walk)
    }
}

/// Every episode of an evaluation on its way.
pub(crate) struct Walker<'a> {
    map: &'a RoadMap,
    sight: Sight<'a>,
    nodes: &'a Nodes,
    /// The nodes as the metric takes them, of a map that is searched whole.
    whole: Option<&'a Points>,
    walks: Walks,
    /// The goals of all episodes that have begun.
    goals: Spots,
    /// Steps between looks, and steps so far: all episodes look at the same time, which costs less.
    every: usize,
    clock: usize,
    pub(crate) walked: Walked,
}

impl<'a> Walker<'a> {
    /// `nodes` are those of the map; all of them, `whole`, are only asked about if it is not
    /// [large](super::is_large).
    pub(crate) fn new(
        map: &'a RoadMap,
        sight: Sight<'a>,
        nodes: &'a Nodes,
        whole: Option<&'a Points>,
    ) -> Self {
        let looks = if map.rule.noisy { LOOKS } else { 1 };
        let every = (map.rule.steps as usize / looks).max(1);
        let (walks, goals, walked) = (Walks::default(), Spots::default(), Walked::default());
        Self { map, sight, nodes, whole, walks, goals, every, clock: 0, walked }
    }

    /// Replaces the goals of the episodes `numbers` by what the policy is sent to now.
    pub(crate) fn aim(&mut self, numbers: &[usize], seen: &[f32], goals: &mut [f32]) -> Result<()> {
        let width = self.sight.model.dimensions().state();
        let columns = self.sight.model.dimensions().goal_columns();
        self.begin(numbers, goals)?;
        let mut looks = Vec::new();
        let rows = match self.clock.is_multiple_of(self.every) {
            true => numbers,
            false => &[],
        };
        self.clock += 1;
        for (row, number) in rows.iter().enumerate() {
            if let Some(walk) = self.walks.get_mut(*number) {
                match walk.wait {
                    0 => looks.push(row),
                    _ => walk.wait -= 1,
                }
                walk.since += self.every;
                if let Some((_, steps)) = &mut walk.remaining {
                    *steps += self.every;
                }
            }
        }
        if !looks.is_empty() {
            let states: Vec<f32> =
                looks.iter().flat_map(|row| &seen[row * width..][..width]).copied().collect();
            let of: Vec<usize> = looks.iter().map(|&row| numbers[row]).collect();
            let spots = self.sight.spots(&states)?;
            self.look(&of, 0..of.len(), &spots, false)?;
            self.plan(&of, &states, &spots)?;
        }
        for (number, goal) in numbers.iter().zip(goals.chunks_exact_mut(columns.len())) {
            let Some(walk) = self.walks.get(*number) else { continue };
            if let Some(&node) = walk.path.get(walk.at).filter(|_| walk.planned) {
                goal.copy_from_slice(&self.map.node(node as usize)[columns.clone()]);
            }
        }
        Ok(())
    }

    /// Finds the ways to the goals of episodes that are new.
    fn begin(&mut self, numbers: &[usize], goals: &[f32]) -> Result<()> {
        let columns = self.sight.model.dimensions().goal_columns();
        if numbers.iter().all(|number| self.walks.get(*number).is_some()) {
            return Ok(());
        }
        let rows = numbers.iter().zip(goals.chunks_exact(columns.len()));
        let fresh: Vec<(usize, &[f32])> = rows
            .filter(|(number, _)| self.walks.get(**number).is_none())
            .map(|(number, goal)| (*number, goal))
            .collect();
        let states: Vec<f32> = fresh.iter().flat_map(|(_, goal)| self.whole_state(goal)).collect();
        let spots = self.sight.spots(&states)?;
        let ends = match self.whole {
            Some(nodes) => {
                let points = self.sight.all_points(&spots)?;
                self.map.ends(&self.sight.measure, nodes, &states, &points)?
            }
            None => find(self.map, &self.sight, self.nodes, &states, &spots, true)?,
        };
        for (goal, ((number, _), ends)) in fresh.into_iter().zip(ends).enumerate() {
            let walk = Walk::new(self.map, ends, self.goals.rows() + goal);
            self.walks.0.push((number, walk));
        }
        self.goals.append(spots);
        Ok(())
    }

    /// A whole state with a goal's coordinates: what a goal leaves open is that of the node whose
    /// coordinates are nearest.
    fn whole_state(&self, goal: &[f32]) -> Vec<f32> {
        let columns = self.sight.model.dimensions().goal_columns();
        if goal.len() == self.map.width {
            return goal.to_vec();
        }
        let nodes = self.map.nodes().chunks_exact(self.map.width);
        let near = nodes.min_by(|a, b| {
            let apart = |node: &[f32]| l2(&node[columns.clone()], goal);
            apart(a).total_cmp(&apart(b))
        });
        let mut state = near.unwrap_or(goal).to_vec();
        state[columns].copy_from_slice(goal);
        state
    }

    /// Sends the episodes at some places of `of`, which stand at the same places of `spots`, on
    /// along their paths, or notes that they need another; whether the paths are `fresh`.
    fn look(
        &mut self,
        of: &[usize],
        places: impl IntoIterator<Item = usize>,
        spots: &Spots,
        fresh: bool,
    ) -> Result<()> {
        let (mut asked, mut windows) = (Vec::new(), Vec::new());
        for place in places {
            let Some(walk) = self.walks.get(of[place]).filter(|walk| walk.planned) else {
                continue;
            };
            let window = if walk.careful.is_some() { 1 } else { WINDOW };
            let end = (walk.at + window).min(walk.path.len() + 1);
            let first = walk.first(self.map);
            windows.push((of[place], end - first));
            asked.extend((first..end).map(|step| {
                let to = match walk.path.get(step) {
                    Some(&node) => self.nodes.spots().row(node as usize),
                    None => self.goals.row(walk.goal),
                };
                (spots.row(place), to)
            }));
        }
        let distances = self.sight.distances(&asked)?;
        let (link, reach, steps) = (self.map.rule.link, self.map.rule.reach, self.map.rule.steps);
        let noisy = self.map.rule.noisy;
        let patience = if noisy { PATIENCE / 2 } else { PATIENCE } * (steps as usize).max(1);
        let mut first = 0;
        for (number, count) in windows {
            let ahead = &distances[first..first + count];
            first += count;
            let Some(walk) = self.walks.get_mut(number) else { continue };
            let (before, asked) = (walk.at, walk.first(self.map));
            match noisy {
                true => walk.follow(ahead, reach),
                false => walk.advance(ahead, [link, reach]),
            }
            let distance = ahead[walk.at - asked];
            // A careful one is half way before the goal: from here it is sent on.
            let half_way = walk.at < walk.path.len()
                && walk.careful.is_some_and(|(limit, _)| distance <= 0.5 * limit);
            if walk.at > before || distance < 0.98 * walk.nearest {
                (walk.nearest, walk.since) = (distance, 0);
            }
            let stuck = walk.since > patience;
            if stuck {
                walk.fail(self.map);
            }
            let off = distance > OFF * reach && !noisy;
            if stuck || half_way || off {
                walk.planned = false;
                self.walked.replanned += usize::from(!half_way);
                // Half way at once: far along the path, and near by the distance. Straight to the
                // goal for a while, like those without a way.
                if fresh && half_way {
                    walk.wait = (patience << walk.dropped.min(LONGEST)) / self.every;
                    walk.dropped += 1;
                }
            } else {
                walk.dropped = 0;
                walk.wait = walk.until_half_way(distance, self.every, patience) / self.every - 1;
            }
        }
        Ok(())
    }

    /// Finds paths for those of the episodes `of` that have none, from the states where they stand.
    fn plan(&mut self, of: &[usize], states: &[f32], spots: &Spots) -> Result<()> {
        let without = |number: &usize| self.walks.get(*number).is_some_and(|walk| !walk.planned);
        let all: Vec<usize> = (0..of.len()).filter(|&place| without(&of[place])).collect();
        // Where no node has a way, none is looked for.
        let some_way = |place: &usize| self.walks.get(of[*place]).is_some_and(Walk::has_ways);
        let (places, mut lost): (Vec<usize>, Vec<usize>) = all.iter().partition(|&at| some_way(at));
        for (place, near) in places.iter().zip(self.entries(&places, states, spots)?) {
            let Some(walk) = self.walks.get_mut(of[*place]) else { continue };
            if walk.take(self.map, &near) {
                continue;
            }
            let has_way = walk.with_ways(self.map);
            let near = self.within_reach(&has_way, states, spots, *place)?;
            let walk = self.walks.get_mut(of[*place]);
            if !walk.is_some_and(|walk| walk.take(self.map, &near)) {
                lost.push(*place);
            }
        }
        for place in lost {
            let Some(walk) = self.walks.get_mut(of[place]) else { continue };
            self.walked.no_way += usize::from(walk.lost == 0);
            // Straight to the goal, and another try when that has not helped for a while, longer each
            // time.
            let patience = PATIENCE * self.map.rule.steps as usize;
            walk.wait = (patience << walk.lost.min(LONGEST)) / self.every;
            walk.lost += 1;
        }
        // Those with a new path are sent as far along it as they may be, at once.
        self.look(of, all, spots, true)
    }

    /// For some of the states the nodes that a link leads to from there.
    fn entries(
        &self,
        places: &[usize],
        states: &[f32],
        spots: &Spots,
    ) -> Result<Vec<Vec<(u32, f32)>>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let width = self.map.width;
        let stands: Vec<f32> =
            places.iter().flat_map(|at| &states[at * width..][..width]).copied().collect();
        match self.whole {
            Some(nodes) => {
                let points = self.sight.points(spots, places.iter().copied())?;
                self.map.entries(&self.sight.measure, nodes, &stands, &points)
            }
            None => {
                let some = spots.some(places.iter().copied());
                find(self.map, &self.sight, self.nodes, &stands, &some, false)
            }
        }
    }

    /// Nodes that have a way and are no farther than the policy is sent from the state at a place;
    /// on a large map of the nearest ones as the model sees them.
    fn within_reach(
        &self,
        has_way: &[bool],
        states: &[f32],
        spots: &Spots,
        place: usize,
    ) -> Result<Vec<(u32, f32)>> {
        let (nodes, lengths) = match self.whole {
            Some(all) => {
                let nodes: Vec<u32> =
                    (0..).take(has_way.len()).filter(|&node| has_way[node as usize]).collect();
                let to = gather(all, nodes.iter().map(|&node| node as usize))?;
                let from = self.sight.points(spots, [place].into_iter())?;
                (nodes, self.sight.measure.pairs(&from, &to)?)
            }
            None => {
                let state = &states[place * self.map.width..][..self.map.width];
                let nodes =
                    self.nodes.near(&self.sight.model.scaled(state), SOME, |node| has_way[node]);
                let to = nodes.iter().map(|&node| self.nodes.spots().row(node as usize));
                let asked: Vec<_> = to.map(|to| (spots.row(place), to)).collect();
                let lengths = self.sight.distances(&asked)?;
                (nodes, lengths)
            }
        };
        let near = nodes.into_iter().zip(lengths);
        Ok(near.filter(|(_, length)| *length <= self.map.rule.reach).collect())
    }
}
