//! How far a learned distance is trusted, by trajectories that the map is not made of.

use std::fmt;

use bincode::{Decode, Encode};
use cm_nn::Backend;
use cm_replay::{Dataset, Split};

use super::measure::Measure;
use super::of_data::quantile;
use super::{PlanSettings, l2};
use crate::{Calibration, Result, Steps, rank_correlation};

/// The share of the trajectories that a map is not made of.
const HELD_OUT: f64 = 0.1;
/// Nothing is held out of fewer trajectories.
const FEWEST: usize = 10;
/// Most goals on held-out trajectories, the fewest on each of them, and starts for each goal.
const GOALS: usize = 800;
const EACH: usize = 2;
const STARTS: usize = 12;
/// Pairs of rows that lengths are taken from, and the fewest that say something.
const PAIRS: usize = 2_000;
const FEWEST_PAIRS: usize = 40;
/// The share of pairs that cover less: trajectories also dawdle, turn round and stand still.
const SHARE: f64 = 0.95;
/// A distance is contradicted where it took held-out trajectories so many times the steps that it
/// should, by what links of the longest kind took.
const CONTRADICTED: f32 = 2.0;
/// Distances between the longest link and how far the policy is to be sent that are looked at.
const LOOKS: usize = 64;

/// How far a [`RoadMap`](crate::RoadMap)'s distance is trusted, by trajectories that the map was not
/// made of.
///
/// ```
/// use std::sync::atomic::AtomicBool;
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
/// let map = RoadMap::of_data(&model, &task, &PlanSettings::default())?;
/// let trust = map.trust().unwrap();
/// assert!(trust.trajectories > 0 && !trust.unseen);
/// assert!(map.lengths()[1] <= trust.wanted);
/// println!("{trust}");
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Trust {
    /// Trajectories that the map was not made of; none if there were too few, and then those of the
    /// map were looked at.
    pub trajectories: usize,
    /// Pairs of their states, the second of which was reached from the first.
    pub pairs: usize,
    /// Whether the model was not trained on them either.
    pub unseen: bool,
    /// The rank correlation of the distances of these pairs and the steps between them.
    pub correlation: f32,
    /// How far ahead the policy would be sent if held-out trajectories went so far, and took no
    /// longer than they should.
    pub wanted: f32,
    /// How far ahead it is sent.
    pub reach: f32,
    /// The longest link.
    pub link: f32,
    pub(super) calibration: Option<Calibration>,
}

impl Trust {
    /// How many steps held-out trajectories took over a distance; nothing if none went so far.
    pub fn steps(&self, distance: f32) -> Option<Steps> {
        self.calibration.as_ref()?.steps(distance)
    }

    fn in_steps(&self, distance: f32) -> String {
        let steps = self.steps(distance);
        steps.map_or("farther than they went".to_owned(), |steps| steps.to_string())
    }

    /// The longest distance up to `wanted` that nine of ten held-out pairs so far apart took no more
    /// than so many steps for.
    pub(super) fn within(&self, wanted: f32, steps: f32) -> f32 {
        let Some(calibration) = self.calibration.as_ref() else { return wanted };
        let at = |look: usize| wanted * look as f32 / LOOKS as f32;
        let near =
            |&distance: &f32| calibration.steps(distance).is_some_and(|taken| taken.high <= steps);
        (1..=LOOKS).rev().map(at).find(near).unwrap_or(at(1))
    }

    /// Sends the policy `wanted` ahead, or as far as held-out trajectories bear out.
    pub(super) fn limit(&mut self, link: f32, wanted: f32) {
        (self.link, self.wanted) = (link, wanted);
        self.reach = self.calibration.as_ref().map_or(wanted, |c| trusted(c, link, wanted));
    }
}

/// The largest distance, from `link` to `wanted`, that held-out trajectories went, and up to which
/// they took no more than twice the steps that they should by their steps over `link`.
fn trusted(calibration: &Calibration, link: f32, wanted: f32) -> f32 {
    let wanted = wanted.min(calibration.farthest().max(link));
    let Some(short) = calibration.steps(link).filter(|_| link > 0.0 && wanted > link) else {
        return wanted;
    };
    let pace = short.about / link;
    let at = |look: usize| link + (wanted - link) * look as f32 / LOOKS as f32;
    let contradicted = |distance: f32| {
        let steps = calibration.steps(distance);
        steps.is_some_and(|steps| steps.about > CONTRADICTED * pace * distance)
    };
    match (1..=LOOKS).find(|&look| contradicted(at(look))) {
        Some(look) => at(look - 1),
        None => wanted,
    }
}

impl fmt::Display for Trust {
    /// Such as `200 trajectories held out, rank correlation 0.84; links up to 3.0: about 12 steps (6
    /// to 20); sent ahead 16.0 instead of 26.0: about 58 steps (39 to 81)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.trajectories {
            0 => write!(f, "no trajectories held out, the map's own looked at")?,
            1 => write!(f, "1 trajectory held out")?,
            count => write!(f, "{count} trajectories held out")?,
        }
        if self.unseen {
            write!(f, ", from training too")?;
        }
        if self.calibration.is_none() {
            return write!(f, ", too few to compare steps and distances");
        }
        write!(f, ", rank correlation {:.2}", self.correlation)?;
        write!(f, "; links up to {:.1}: {}", self.link, self.in_steps(self.link))?;
        write!(f, "; sent ahead {:.1}", self.reach)?;
        if self.reach < self.wanted {
            write!(f, " instead of {:.1}", self.wanted)?;
        }
        write!(f, ": {}", self.in_steps(self.reach))
    }
}

/// Trajectories that a map is not made of.
pub(super) struct Held<'a, B: Backend> {
    measure: &'a Measure<'a, B>,
    data: &'a Dataset,
    /// Those that it is made of, and those that it is not.
    pub(super) split: Split,
    unseen: bool,
}

impl<'a, B: Backend> Held<'a, B> {
    /// Those that were held out from training, else a tenth of all by the map's seed.
    pub(super) fn new(
        measure: &'a Measure<'a, B>,
        data: &'a Dataset,
        settings: &PlanSettings,
    ) -> Result<Self> {
        let own = measure.model.settings().held_out.split(data)?;
        let unseen = !own.validation.is_empty();
        let split = match unseen || data.trajectories() < FEWEST {
            true => own,
            false => data.split(HELD_OUT, settings.seed)?,
        };
        Ok(Self { measure, data, split, unseen })
    }

    /// Distances between their rows so many steps apart; between any if theirs are too few.
    fn distances(&self, steps: usize) -> Result<Vec<f32>> {
        let pairs = |trajectories: &[usize]| -> Vec<(usize, usize)> {
            let starts = trajectories.iter().flat_map(|&trajectory| {
                let rows = self.data.trajectory(trajectory);
                rows.start..rows.end.saturating_sub(steps).max(rows.start)
            });
            let starts: Vec<usize> = starts.collect();
            let every = starts.len().div_ceil(PAIRS).max(1);
            starts.into_iter().step_by(every).map(|row| (row, row + steps)).collect()
        };
        let held = pairs(&self.split.validation);
        match held.len() < FEWEST_PAIRS {
            true => self.between(&pairs(&self.split.training)),
            false => self.between(&held),
        }
    }

    /// What nineteen of twenty of them do not exceed in so many steps; 0 if none is so long.
    pub(super) fn covered(&self, steps: usize) -> Result<f32> {
        Ok(quantile(self.distances(steps)?, SHARE))
    }

    /// How the learned distance relates to the steps that they took.
    pub(super) fn trust(&self) -> Result<Trust> {
        let arrivals = match self.split.validation.is_empty() {
            true => self.arrivals(&self.split.training),
            false => self.arrivals(&self.split.validation),
        };
        let (pairs, steps): (Vec<_>, Vec<usize>) = arrivals.into_iter().unzip();
        let steps = steps.into_iter().map(|steps| steps as f32);
        let found: Vec<(f32, f32)> = self.between(&pairs)?.into_iter().zip(steps).collect();
        let (distances, steps): (Vec<f64>, Vec<f64>) =
            found.iter().map(|&(distance, steps)| (f64::from(distance), f64::from(steps))).unzip();
        let calibration = Calibration::fit(&found);
        let correlation = calibration.as_ref().map(|_| rank_correlation(&distances, &steps));
        Ok(Trust {
            trajectories: self.split.validation.len(),
            pairs: pairs.len(),
            unseen: self.unseen,
            correlation: correlation.unwrap_or(0.0) as f32,
            wanted: 0.0,
            reach: 0.0,
            link: 0.0,
            calibration,
        })
    }

    /// Rows of trajectories with later ones, and the steps until the trajectory first came to the
    /// later one: within a step of it, so that neither circles nor standing still make it far.
    fn arrivals(&self, trajectories: &[usize]) -> Vec<((usize, usize), usize)> {
        let row = |row: usize| self.data.observations().row(row);
        let moved = trajectories.iter().take(100).flat_map(|&one| {
            self.data.trajectory(one).skip(1).map(|next| l2(row(next - 1), row(next)))
        });
        let step = quantile(moved.collect(), 0.5);
        let each = GOALS.div_ceil(trajectories.len().max(1)).max(EACH);
        let mut found = Vec::new();
        for &trajectory in trajectories.iter().take(GOALS / EACH) {
            let rows = self.data.trajectory(trajectory);
            let each = each.min(rows.len().saturating_sub(1));
            for goal in (1..=each).map(|number| rows.start + number * (rows.len() - 1) / each) {
                let mut arrived = goal;
                let mut pairs = Vec::new();
                for start in (rows.start..goal).rev() {
                    match l2(row(start), row(goal)) <= step {
                        true => arrived = start,
                        false => pairs.push(((start, goal), arrived - start)),
                    }
                }
                let every = pairs.len().div_ceil(STARTS).max(1);
                found.extend(pairs.into_iter().step_by(every));
            }
        }
        found
    }

    fn between(&self, pairs: &[(usize, usize)]) -> Result<Vec<f32>> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let points = |row: fn(&(usize, usize)) -> usize| {
            let row = |pair| self.measure.model.unscaled(self.data.observations().row(row(pair)));
            self.measure.points(&pairs.iter().flat_map(row).collect::<Vec<f32>>())
        };
        self.measure.rows(&points(|pair| pair.0)?, &points(|pair| pair.1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs up to 100 steps apart, each with the distance that `d` gives the steps.
    fn calibration(d: impl Fn(f32) -> f32) -> Calibration {
        let pairs = (0..5_000).map(|number| (1 + number % 100) as f32);
        Calibration::fit(&pairs.map(|steps| (d(steps), steps)).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_good_distance_is_trusted_as_far_as_wanted_whatever_its_unit() {
        for unit in [0.1, 1.0, 30.0] {
            let good = calibration(|steps| unit * steps);
            assert_eq!(trusted(&good, 10.0 * unit, 50.0 * unit), 50.0 * unit);
            // No farther than anybody went.
            let reach = trusted(&good, 10.0 * unit, 500.0 * unit) / unit;
            assert!((98.0..=100.0).contains(&reach), "{reach}");
        }
        // Those who walk to and fro take longer, but alike over every distance.
        let slow = calibration(|steps| 0.1 * steps);
        assert_eq!(trusted(&slow, 1.0, 5.0), 5.0);
    }

    #[test]
    fn a_distance_that_saturates_is_trusted_as_far_as_it_grows() {
        let flat = calibration(|steps| steps.min(20.0));
        let reach = trusted(&flat, 5.0, 50.0);
        assert!((15.0..20.0).contains(&reach), "{reach}");
        // Never less far than links go.
        assert_eq!(trusted(&flat, 25.0, 50.0), 25.0);
    }

    #[test]
    fn a_distance_that_is_too_short_by_a_factor_is_trusted_as_far_as_it_is_not() {
        // From 10 steps on, one is 0.2 long.
        let wrong = calibration(|steps| steps.min(10.0) + 0.2 * (steps - 10.0).max(0.0));
        let reach = trusted(&wrong, 5.0, 25.0);
        // 10 + 0.2 n took 10 + n: twice as long as it should from n = 10 / 0.6 on.
        assert!((12.5..14.0).contains(&reach), "{reach}");
        // Too short by less than the half is no contradiction.
        let nearly = calibration(|steps| steps.min(10.0) + 0.7 * (steps - 10.0).max(0.0));
        assert_eq!(trusted(&nearly, 5.0, 50.0), 50.0);
    }

    #[test]
    fn links_end_where_one_pair_in_ten_took_too_long() {
        let calibration = calibration(|steps| steps.min(20.0));
        let trust = Trust {
            trajectories: 7,
            pairs: 5_000,
            unseen: false,
            correlation: 0.9,
            wanted: 0.0,
            reach: 0.0,
            link: 0.0,
            calibration: Some(calibration),
        };
        assert_eq!(trust.within(10.0, 40.0), 10.0);
        // At 20 most took far longer.
        let far = trust.within(25.0, 40.0);
        assert!((15.0..20.0).contains(&far), "{far}");
        assert!(trust.within(10.0, 5.0) <= 5.5);
        assert_eq!(Trust { calibration: None, ..trust }.within(25.0, 40.0), 25.0);
    }

    #[test]
    fn it_says_what_it_is_by() {
        let mut trust = Trust {
            trajectories: 7,
            pairs: 5_000,
            unseen: true,
            correlation: 0.875,
            wanted: 0.0,
            reach: 0.0,
            link: 0.0,
            calibration: Some(calibration(|steps| steps.min(20.0))),
        };
        trust.limit(5.0, 50.0);
        let text = trust.to_string();
        assert!(text.starts_with("7 trajectories held out, from training too, rank"), "{text}");
        assert!(text.contains("; links up to 5.0: about 5 steps"), "{text}");
        assert!(text.contains(" instead of 50.0: about "), "{text}");
        trust.calibration = None;
        trust.limit(5.0, 50.0);
        assert_eq!((trust.reach, trust.steps(1.0)), (50.0, None));
        assert!(trust.to_string().ends_with("too few to compare steps and distances"));
    }
}
