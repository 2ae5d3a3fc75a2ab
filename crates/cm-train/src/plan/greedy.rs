//! Greedy paths: from place to place within a ball, always to where the goal is nearest by the
//! learned distance (the paper, Figure 2).

use cm_nn::check::positive;

use super::{GreedyPath, l2};
use crate::{Model, Result};

/// How to plan by the learned distance to the goal alone.
///
/// Far from the goal that distance has hollows in which such a path stops; a
/// [`RoadMap`](super::RoadMap) has none.
///
/// ```
/// # use std::sync::atomic::AtomicBool;
/// # use cm_train::{Device, Method, Model, RunFolder, RunSettings, train};
/// use cm_train::Planner;
///
/// # let settings = RunSettings::tiny_plane(Method::Cmd1, 0);
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = RunFolder::new(folder.path().join("run"));
/// # let task = settings.task.open()?;
/// # train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
/// let model = Model::load(&folder, false)?;
/// let places = [1.0, 0.0, 2.0, 0.0];
/// let planner = Planner { radius: 2.0, longest: 10, arrived: 0.5 };
/// let path = &planner.paths(&model, &places, &[0.0, 0.0], &[2.0, 0.0])?[0];
/// // No move leads away.
/// assert!(path.distances.is_sorted_by(|a, b| a >= b));
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planner {
    /// How far one move may go, in the state's own units.
    pub radius: f32,
    /// The longest path.
    pub longest: usize,
    /// How near to the goal is near enough.
    pub arrived: f32,
}

impl Planner {
    /// Plans from each start to one goal through `places`, whole states one after another.
    ///
    /// The distance from every place to the goal is computed once, so many starts cost little more
    /// than one.
    pub fn paths(
        &self,
        model: &Model,
        places: &[f32],
        starts: &[f32],
        goal: &[f32],
    ) -> Result<Vec<GreedyPath>> {
        positive("radius", self.radius)?;
        positive("arrived", self.arrived)?;
        let width = model.dimensions().state();
        let distances = model.distances_to(places, goal)?;
        let at_start = model.distances_to(starts, goal)?;
        let paths = starts.chunks_exact(width).zip(at_start);
        Ok(paths
            .map(|(start, distance)| self.walk(places, &distances, start, distance, goal))
            .collect())
    }

    fn walk(
        &self,
        places: &[f32],
        distances: &[f32],
        start: &[f32],
        distance: f32,
        goal: &[f32],
    ) -> GreedyPath {
        let mut path = GreedyPath::starting(start, distance);
        let (mut here, mut distance) = (start, distance);
        while path.states.len() < self.longest {
            if l2(here, goal) <= self.arrived {
                path.push(goal, 0.0);
                path.arrived = true;
                break;
            }
            let near = places.chunks_exact(goal.len()).zip(distances);
            let near = near.filter(|(place, _)| l2(here, place) <= self.radius);
            let Some((next, &nearer)) = near.min_by(|a, b| a.1.total_cmp(b.1)) else { break };
            if nearer >= distance {
                break;
            }
            (here, distance) = (next, nearer);
            path.push(here, distance);
        }
        path
    }
}
