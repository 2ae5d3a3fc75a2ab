//! Far distances composed of near ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cm_nn::check::positive;

use super::{GreedyPath, Length, l2};
use crate::{Error, Model, Result};

/// Which places are linked in a [`RoadMap`].
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

/// Places and the learned distances along the [`Links`] between them.
///
/// A distance learned by contrast is sharp where states follow each other in the data, within a few
/// nats; how far *very* far is, the data hardly say. Because a quasimetric's distances add up, the
/// short ones are enough: the way from a place is the shortest chain of links. Greedy paths by that
/// distance never stop half way, and go the way the data went.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use cm_train::{Device, Links, Method, Model, RoadMap, RunFolder, RunSettings, train};
///
/// // A barely trained model.
/// let settings = RunSettings::tiny_plane(Method::Cmd1, 0);
/// let folder = tempfile::tempdir().unwrap();
/// let folder = RunFolder::new(folder.path().join("run"));
/// let task = settings.task.open()?;
/// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
///
/// // Places on a line, one apart, which may be linked to their neighbours only.
/// let model = Model::load(&folder, false)?;
/// let places: Vec<f32> = (0..10).flat_map(|x| [x as f32, 0.0]).collect();
/// let map = RoadMap::new(&model, &places, Links { radius: 1.5, longest: 100.0 })?;
/// let path = &map.paths(&[0.0, 0.0], &[9.0, 0.0])?[0];
/// assert!(path.arrived && path.states.len() == 10);
/// # Ok::<(), cm_train::Error>(())
/// ```
pub struct RoadMap<'a> {
    model: &'a Model,
    links: Links,
    places: &'a [f32],
    /// For each place those from which a link leads to it, and the links' lengths.
    into: Vec<Vec<(usize, f32)>>,
}

impl<'a> RoadMap<'a> {
    /// Links `places`, whole states one after another. Refuses methods whose distances can be
    /// negative.
    ///
    /// Every pair of places within the radius costs one learned distance.
    pub fn new(model: &'a Model, places: &'a [f32], links: Links) -> Result<Self> {
        positive("radius", links.radius)?;
        positive("link", links.longest)?;
        let method = model.settings().method.method();
        if !method.is_quasimetric() {
            return Err(Error::Setting {
                setting: "link".to_owned(),
                expected: "a method that learns a quasimetric: cmd1, cmd2 or qrl",
                found: method.to_string(),
            });
        }
        let width = model.dimensions().state();
        model.check_rows("places", places.len(), width)?;
        let mut map = Self { model, links, places, into: Vec::new() };
        let places = places.chunks_exact(width);
        map.into = places.map(|place| map.links_into(place)).collect::<Result<_>>()?;
        Ok(map)
    }

    /// Plans from each start, whole states one after another, to one goal.
    pub fn paths(&self, starts: &[f32], goal: &[f32]) -> Result<Vec<GreedyPath>> {
        // Refuses starts and goals of another width.
        let direct = self.model.distances_to(starts, goal)?;
        let ways = self.ways(goal)?;
        let starts = starts.chunks_exact(goal.len()).zip(direct);
        starts.map(|(start, direct)| self.follow(&ways, start, direct, goal)).collect()
    }

    /// The way from every place to the goal.
    fn ways(&self, goal: &[f32]) -> Result<Vec<Way>> {
        let mut ways = vec![Way { remaining: f32::INFINITY, next: None }; self.into.len()];
        let mut reached = BinaryHeap::new();
        let offer = |ways: &mut [Way], reached: &mut BinaryHeap<_>, place, way: Way| {
            let known: &mut Way = &mut ways[place];
            if way.remaining < known.remaining {
                *known = way;
                reached.push(Reverse((Length(way.remaining), place)));
            }
        };
        for (place, length) in self.links_into(goal)? {
            offer(&mut ways, &mut reached, place, Way { remaining: length, next: None });
        }
        while let Some(Reverse((Length(remaining), next))) = reached.pop() {
            if remaining > ways[next].remaining {
                continue;
            }
            for &(place, length) in &self.into[next] {
                let way = Way { remaining: remaining + length, next: Some(next) };
                offer(&mut ways, &mut reached, place, way);
            }
        }
        Ok(ways)
    }

    /// From a start to the best place it is linked to, or to the goal itself, and on from there.
    fn follow(&self, ways: &[Way], start: &[f32], direct: f32, goal: &[f32]) -> Result<GreedyPath> {
        let mut best = Way { remaining: f32::INFINITY, next: None };
        if l2(start, goal) <= self.links.radius && direct <= self.links.longest {
            best.remaining = direct;
        }
        for (place, length) in self.links_from(start)? {
            let remaining = length + ways[place].remaining;
            if remaining < best.remaining {
                best = Way { remaining, next: Some(place) };
            }
        }
        let mut path = GreedyPath::starting(start, best.remaining);
        if best.remaining.is_infinite() {
            path.distances[0] = direct;
            return Ok(path);
        }
        // Start and goal may be among the places: no state twice in a row.
        let mut go = |state: &[f32], remaining| {
            if path.states.last().is_none_or(|last| last != state) {
                path.push(state, remaining);
            }
        };
        let mut next = best.next;
        while let Some(place) = next {
            go(self.place(place), ways[place].remaining);
            next = ways[place].next;
        }
        go(goal, 0.0);
        path.arrived = true;
        Ok(path)
    }

    fn links_into(&self, state: &[f32]) -> Result<Vec<(usize, f32)>> {
        self.links(state, |near| self.model.distances_to(near, state))
    }

    fn links_from(&self, state: &[f32]) -> Result<Vec<(usize, f32)>> {
        self.links(state, |near| self.model.distances_from(state, near))
    }

    /// Places within the radius of `state` that are near by a distance as well, and that distance.
    fn links(
        &self,
        state: &[f32],
        distances: impl FnOnce(&[f32]) -> Result<Vec<f32>>,
    ) -> Result<Vec<(usize, f32)>> {
        let near: Vec<usize> = (0..self.places.len() / state.len())
            .filter(|&place| l2(self.place(place), state) <= self.links.radius)
            .collect();
        if near.is_empty() {
            return Ok(Vec::new());
        }
        let states: Vec<f32> = near.iter().flat_map(|&place| self.place(place)).copied().collect();
        let links = near.into_iter().zip(distances(&states)?);
        Ok(links.filter(|&(_, length)| length <= self.links.longest).collect())
    }

    fn place(&self, place: usize) -> &[f32] {
        let width = self.model.dimensions().state();
        &self.places[place * width..][..width]
    }
}

/// How to go on from a place.
#[derive(Clone, Copy)]
struct Way {
    /// The length of what remains; infinite if there is no way.
    remaining: f32,
    /// The next place; none if that is the goal.
    next: Option<usize>,
}
