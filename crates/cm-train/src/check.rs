//! Is a learned distance any good? What can be said without the truth.

use cm_random::{Philox, below_u64};
use rand_core::Rng;

use crate::finish::{GOALS, STARTS, held_out_pairs, pair_distances, some_actions, triangles};
use crate::held_out::Validator;
use crate::{Error, Model, ReadOut, Result, Task, Validation};

/// What held-out trajectories say about a model's distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// How the distances were read out.
    pub read_out: ReadOut,
    /// Trajectories that were trained on, and trajectories held out.
    pub trajectories: [usize; 2],
    /// How well goals are told from others; none for methods that do not learn by contrast.
    pub contrast: Option<Validation>,
    /// Pairs of states of held-out trajectories, the first before the second.
    pub pairs: Vec<Pair>,
    /// Spearman's rank correlation of distance and elapsed steps over these pairs.
    pub rank_correlation: f64,
    /// Of triples `s`, `w`, `g` in this order on one trajectory, the share with `d(s, w)` and
    /// `d(w, g)` both below `d(s, g)`.
    pub ordered: f64,
    /// The share of pairs that are farther back than ahead.
    pub asymmetry: f64,
    /// The share of pairs without a way.
    pub unreachable: f64,
    /// Triples of states of the data, and how many violate the triangle inequality.
    pub triangles: [usize; 2],
    /// How much the method's own distance changes with the goal's action, as a share of how much it
    /// differs between pairs; none if it has no actions.
    pub goal_action: Option<f64>,
    /// How often the steps taken lie between the calibration's bounds; none without one. These are
    /// the pairs it was made from.
    pub calibrated: Option<f64>,
}

/// Two states of a held-out trajectory.
///
/// ```
/// use cm_train::Pair;
///
/// // On a ring that is walked one way: a step ahead is a turn back.
/// let pair = Pair { distance: 0.1, back: 6.2, steps: 1.0 };
/// assert!(pair.back > pair.distance);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The learned distance.
    pub distance: f32,
    /// The distance back.
    pub back: f32,
    /// How many steps lay between.
    pub steps: f32,
}

/// Triples for the triangle inequality.
const TRIANGLES: usize = 1_000_000;
/// Triples on trajectories.
const TRIPLES: usize = 2_000;
/// Pairs for the goal's action.
const ACTION_PAIRS: usize = 500;
/// The stream of these choices.
const STREAM: u32 = 0x022;

/// Checks a model against the trajectories that were held out from its training.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use cm_train::{Device, Method, Model, RunFolder, RunSettings, check, train};
///
/// // Twelve walks to the right, of which two are held out.
/// let scratch = tempfile::tempdir().unwrap();
/// let file = scratch.path().join("walks.csv");
/// let rows = (0..12).flat_map(|walk| (0..10).map(move |x| format!("{walk},{x},1\n")));
/// let text: String = rows.collect();
/// std::fs::write(&file, format!("trajectory,observation_x,action_x\n{text}")).unwrap();
///
/// // Too short a training to be any good.
/// let mut settings = RunSettings { steps: 5, ..RunSettings::own_data(Method::Cmd1, file) };
/// settings.held_out.share = 0.2;
/// let (folder, task) = (RunFolder::new(scratch.path().join("run")), settings.task.open()?);
/// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
///
/// let found = check(&Model::load(&folder, true)?, &task)?;
/// assert_eq!(found.trajectories, [10, 2]);
/// assert_eq!(found.triangles, [1_000_000, 0]);
/// assert!(found.pairs.iter().all(|pair| pair.steps >= 1.0 && pair.distance >= 0.0));
/// # Ok::<(), cm_train::Error>(())
/// ```
pub fn check(model: &Model, task: &Task) -> Result<Check> {
    let (data, settings) = (&task.data, model.settings());
    let split = settings.held_out.split(data)?;
    let rows = held_out_pairs(data, &split, GOALS, STARTS);
    if rows.is_empty() {
        let found = format!(
            "{} trajectories, of which held_out.share = {} is none",
            data.trajectories(),
            settings.held_out.share
        );
        let (setting, expected) = ("held_out".to_owned(), "trajectories that were held out");
        return Err(Error::Setting { setting, expected, found });
    }
    let ahead = pair_distances(model, data, &rows)?;
    let reversed: Vec<_> = rows.iter().map(|&(from, to)| (to, from)).collect();
    let back = pair_distances(model, data, &reversed)?;
    let pairs: Vec<Pair> = rows
        .iter()
        .zip(ahead.iter().zip(&back))
        .map(|(&(from, to), (&distance, &back))| Pair { distance, back, steps: (to - from) as f32 })
        .collect();
    let share = |holds: &dyn Fn(&Pair) -> bool| {
        pairs.iter().filter(|pair| holds(pair)).count() as f64 / pairs.len() as f64
    };
    let (backend, learner) = model.learner();
    let contrast = match Validator::new(settings, task)? {
        Some(validator) => validator.look(backend, learner)?,
        None => None,
    };
    let (violated, triples) = triangles(model, data, TRIANGLES)?;
    let calibrated = model.calibration().map(|calibration| {
        share(&|pair| {
            let steps = calibration.steps(pair.distance);
            steps.is_some_and(|steps| steps.low <= pair.steps && pair.steps <= steps.high)
        })
    });
    Ok(Check {
        read_out: model.read_out(),
        trajectories: [split.training.len(), split.validation.len()],
        contrast,
        rank_correlation: rank_correlation(
            &pairs.iter().map(|pair| f64::from(pair.distance)).collect::<Vec<_>>(),
            &pairs.iter().map(|pair| f64::from(pair.steps)).collect::<Vec<_>>(),
        ),
        ordered: ordered(model, task, &rows)?,
        asymmetry: share(&|pair| pair.back > pair.distance),
        unreachable: share(&|pair| pair.distance.is_infinite()),
        triangles: [triples, violated],
        goal_action: goal_action(model, task, &rows)?,
        calibrated,
        pairs,
    })
}

impl Check {
    /// Whether the distance can be relied on, and why not.
    ///
    /// ```
    /// use cm_train::{Check, ReadOut};
    ///
    /// let good = Check {
    ///     read_out: ReadOut::States,
    ///     trajectories: [90, 10],
    ///     contrast: None,
    ///     pairs: Vec::new(),
    ///     rank_correlation: 0.95,
    ///     ordered: 0.98,
    ///     asymmetry: 0.5,
    ///     unreachable: 0.0,
    ///     triangles: [1_000_000, 0],
    ///     goal_action: None,
    ///     calibrated: None,
    /// };
    /// assert!(good.verdict().0);
    /// let (relied_on, why) = Check { unreachable: 0.25, ..good }.verdict();
    /// assert!(!relied_on);
    /// assert_eq!(why, "doubtful: 25 % of pairs have no way");
    /// ```
    pub fn verdict(&self) -> (bool, String) {
        let mut faults = Vec::new();
        if self.rank_correlation < 0.8 {
            faults.push(format!(
                "distances hardly follow the steps taken (rank correlation {:.2})",
                self.rank_correlation
            ));
        }
        if self.ordered < 0.8 {
            faults
                .push(format!("{:.0} % of triples are out of order", 100.0 * (1.0 - self.ordered)));
        }
        if let Some(found) = &self.contrast {
            if found.held_out.accuracy < 0.6 {
                faults.push("goals are hardly told from others".to_owned());
            }
            if found.held_out.loss > found.training.loss + 0.5 {
                faults.push("it has learned its trajectories by heart (overfitting)".to_owned());
            }
        }
        if self.unreachable > 0.05 {
            faults.push(format!("{:.0} % of pairs have no way", 100.0 * self.unreachable));
        }
        if self.triangles[1] > 0 {
            let share = 100.0 * self.triangles[1] as f64 / self.triangles[0] as f64;
            faults.push(format!("{share:.1} % of triangles are violated"));
        }
        match faults.is_empty() {
            true => (true, "good: distances order held-out trajectories as time does".to_owned()),
            false => (false, format!("doubtful: {}", faults.join("; "))),
        }
    }
}

/// Of three states in a row, whether both parts of the way are shorter than the whole.
fn ordered(model: &Model, task: &Task, pairs: &[(usize, usize)]) -> Result<f64> {
    let mut random = Philox::new(0).stream(0, STREAM);
    let long: Vec<_> = pairs.iter().filter(|(from, to)| to - from > 1).collect();
    if long.is_empty() {
        return Ok(1.0);
    }
    let triples: Vec<[usize; 3]> = (0..TRIPLES)
        .map(|_| {
            let &(from, to) = long[below_u64(random.next_u64(), long.len() as u64) as usize];
            let between = below_u64(random.next_u64(), (to - from - 1) as u64) as usize;
            [from, from + 1 + between, to]
        })
        .collect();
    let side = |a: usize, b: usize| {
        let pairs: Vec<_> = triples.iter().map(|triple| (triple[a], triple[b])).collect();
        pair_distances(model, &task.data, &pairs)
    };
    let (first, second, whole) = (side(0, 1)?, side(1, 2)?, side(0, 2)?);
    let right = (0..TRIPLES).filter(|&at| first[at].max(second[at]) < whole[at]).count();
    Ok(right as f64 / TRIPLES as f64)
}

/// Deviation over the goal's actions of the method's own distance, over its deviation over pairs.
fn goal_action(model: &Model, task: &Task, pairs: &[(usize, usize)]) -> Result<Option<f64>> {
    let data = &task.data;
    let every = pairs.len().div_ceil(ACTION_PAIRS).max(1);
    let pairs: Vec<_> = pairs.iter().step_by(every).collect();
    let state = |row: usize| model.unscaled(data.observations().row(row));
    let action = |row: usize| task.scaling.unscaled_action(data.actions().row(row));
    let from: Vec<f32> = pairs.iter().flat_map(|pair| state(pair.0)).collect();
    let to: Vec<f32> = pairs.iter().flat_map(|pair| state(pair.1)).collect();
    let start: Vec<f32> = pairs.iter().flat_map(|pair| action(pair.0)).collect();
    let width = task.dimensions.action();
    let mut columns = Vec::new();
    for goal_action in some_actions(data).chunks_exact(width) {
        let goal_action = task.scaling.unscaled_action(goal_action).repeat(pairs.len());
        match model.distances_with_actions((&from, &start), (&to, &goal_action)) {
            Ok(found) => columns.push(found),
            Err(Error::NoDistance { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let deviation = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
    };
    let over_actions = (0..pairs.len()).map(|row| {
        let values: Vec<f64> = columns.iter().map(|column| f64::from(column[row])).collect();
        (deviation(&values), values.iter().sum::<f64>() / values.len() as f64)
    });
    let (within, means): (Vec<f64>, Vec<f64>) = over_actions.unzip();
    let within = within.iter().sum::<f64>() / within.len() as f64;
    Ok(Some(within / deviation(&means).max(f64::MIN_POSITIVE)))
}

/// Spearman's rank correlation; equal numbers share their ranks.
///
/// ```
/// use cm_train::rank_correlation;
///
/// // Only the order counts; infinity is the largest.
/// assert!((rank_correlation(&[0.1, 0.5, f64::INFINITY], &[1.0, 4.0, 9.0]) - 1.0).abs() < 1e-12);
/// assert!((rank_correlation(&[3.0, 2.0, 1.0], &[1.0, 4.0, 9.0]) + 1.0).abs() < 1e-12);
/// ```
pub fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| {
        x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt().max(f64::MIN_POSITIVE)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let first = order.partition_point(|&index| values[index] < values[same[0]]);
        let rank = first as f64 + (same.len() as f64 - 1.0) / 2.0;
        same.iter().for_each(|&index| ranks[index] = rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, f64::INFINITY]), [1.5, 0.0, 1.5, 3.0]);
        assert!((rank_correlation(&[1.0, 2.0, 4.0], &[10.0, 20.0, 21.0]) - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 2.0, 4.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(rank_correlation(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }
}
