//! Learned distances beside the shortest ways through the maze.

use std::path::Path;

use cm_envs::ant_maze::{ShortestWays, Task};
use cm_random::{Philox, below_u64};
use cm_train::{Job, Method, Model, RunFolder, rank_correlation};
use rand_core::Rng;

use super::super::results::{Spread, spread};
use crate::figures::{Chart, Curve};

/// Pairs of rows of the data.
const PAIRS: usize = 2_000;
/// Their choice, among the streams of programs.
const STREAM: u32 = 0x3a1;
/// Points of a curve.
const BINS: usize = 12;

/// What one method's distances have to do with the ways, for every seed.
pub(super) struct OfMethod {
    pub(super) method: Method,
    pub(super) seeds: Vec<u64>,
    /// Spearman's rank correlation, of each seed.
    pub(super) correlations: Vec<f64>,
    /// Lengths of ways and learned distances, of each seed.
    pairs: Vec<Vec<[f64; 2]>>,
}

impl OfMethod {
    pub(super) fn correlation(&self) -> Option<Spread> {
        spread(&self.correlations)
    }
}

/// Compares what the runs of one task have learned with the ways between states of its data, which
/// must be there. Runs without a model or without distances are left out.
pub(super) fn distances(task: Task, jobs: &[&Job]) -> anyhow::Result<Vec<OfMethod>> {
    let mut found = Vec::<OfMethod>::new();
    let mut states = None;
    for job in jobs {
        let folder = RunFolder::new(&job.folder);
        if !folder.model_file().exists() {
            continue;
        }
        let model = Model::load(&folder, false)?;
        if !model.has_distance() {
            continue;
        }
        if states.is_none() {
            states = Some(pairs_of_states(task, job)?);
        }
        let Some(States { from, to, lengths }) = &states else { continue };
        let learned = model.distances(from, to)?;
        let learned = learned.into_iter().map(f64::from).collect::<Vec<_>>();
        let pairs = lengths.iter().zip(&learned).map(|(&length, &far)| [length, far]).collect();
        let method = job.settings.method.method();
        let place = match found.iter().position(|of_method| of_method.method == method) {
            Some(place) => place,
            None => {
                let (seeds, correlations, pairs) = Default::default();
                found.push(OfMethod { method, seeds, correlations, pairs });
                found.len() - 1
            }
        };
        found[place].seeds.push(job.settings.seed);
        found[place].correlations.push(rank_correlation(&learned, lengths));
        found[place].pairs.push(pairs);
    }
    Ok(found)
}

/// Pairs of states, row by row, and how long the ways between them are.
struct States {
    from: Vec<f32>,
    to: Vec<f32>,
    lengths: Vec<f64>,
}

fn pairs_of_states(task: Task, job: &Job) -> anyhow::Result<States> {
    let (of_data, ways) = (job.settings.task.open()?, ShortestWays::new(task.maze()));
    let mut random = Philox::new(0).stream(0, STREAM);
    let rows = of_data.data.steps() as u64;
    let mut states = States { from: Vec::new(), to: Vec::new(), lengths: Vec::new() };
    for _ in 0..PAIRS {
        let [from, to] = [(); 2].map(|()| {
            let row = below_u64(random.next_u64(), rows) as usize;
            of_data.scaling.unscaled(of_data.data.observations().row(row))
        });
        let place = |state: &[f32]| [f64::from(state[0]), f64::from(state[1])];
        if let Some(length) = ways.length(place(&from), place(&to)) {
            states.from.extend(from);
            states.to.extend(to);
            states.lengths.push(length);
        }
    }
    Ok(states)
}

/// Draws mean distances over the length of the way, each method's as a share of its largest one.
pub(super) fn draw(task: Task, found: &[OfMethod], file: &Path) -> anyhow::Result<()> {
    let longest = |of_method: &OfMethod| {
        of_method.pairs.iter().flatten().map(|pair| pair[0]).fold(0.0, f64::max)
    };
    let longest = found.iter().map(longest).fold(0.0, f64::max);
    let curves = found.iter().map(|of_method| {
        let of_seeds = of_method.pairs.iter().map(|pairs| shares(pairs, longest));
        let of_seeds = of_seeds.collect::<Vec<_>>();
        let points = (0..BINS).filter_map(|bin| {
            let seeds = of_seeds.iter().filter_map(|shares| shares[bin]).collect::<Vec<_>>();
            let Spread { mean, error } = spread(&seeds)?;
            Some([(bin as f64 + 0.5) * longest / BINS as f64, mean, error])
        });
        Curve { name: of_method.method.title().to_owned(), points: points.collect() }
    });
    let chart = Chart {
        title: &format!("{task}: learned distances"),
        x_label: "length of the shortest way in the maze",
        y_label: "mean distance, as a share of its largest",
        y_range: Some((0.0, 1.0)),
        curves: &curves.collect::<Vec<_>>(),
    };
    Ok(chart.save(file)?)
}

/// Mean distances by the length of the way, as shares of the largest; none where there is no pair
/// or not all are finite.
fn shares(pairs: &[[f64; 2]], longest: f64) -> Vec<Option<f64>> {
    let mut sums = [(0.0, 0); BINS];
    for &[length, far] in pairs {
        let bin = ((length / longest * BINS as f64) as usize).min(BINS - 1);
        sums[bin] = (sums[bin].0 + far, sums[bin].1 + 1);
    }
    let means = sums.iter().map(|&(sum, count)| {
        (count > 0).then(|| sum / f64::from(count)).filter(|mean| mean.is_finite())
    });
    let means = means.collect::<Vec<_>>();
    let largest = means.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    means.into_iter().map(|mean| Some(mean? / largest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_shares_of_the_largest() {
        let pairs = [[0.0, 1.0], [0.5, 3.0], [11.9, 8.0], [6.5, f64::INFINITY]];
        let found = shares(&pairs, 12.0);
        assert_eq!((found[0], found[11]), (Some(0.25), Some(1.0)));
        assert!(found[1..11].iter().all(Option::is_none));
    }
}
