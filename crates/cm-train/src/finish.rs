//! What is measured when training has ended, and stored with the model.

use std::path::Path;

use cm_nn::Snapshot;
use cm_random::{Philox, below_u64};
use cm_replay::{Dataset, Split};
use rand_core::Rng;

use crate::model::Extras;
use crate::{Calibration, Model, ReadOut, Result, RunFolder, RunSettings, Task};

/// Actions of the data that stand for all of them.
const GOAL_ACTIONS: usize = 16;
/// Most held-out states that pairs end in, and starts for each.
pub(crate) const GOALS: usize = 200;
pub(crate) const STARTS: usize = 60;
/// States that triangles are made of, and how many triangles.
pub(crate) const CORNERS: usize = 150;
const TRIANGLES: usize = 20_000;
/// The stream of these choices.
const STREAM: u32 = 0x021;

/// Adds to the models in `folder` what their read-out needs: ways over the data, actions of the
/// data, steps for distances.
///
/// A model that has it is left alone.
pub(crate) fn finish(folder: &RunFolder, settings: &RunSettings, task: &Task) -> Result<()> {
    if settings.read_out == ReadOut::NoAction {
        return Ok(());
    }
    for file in [folder.best_file(), folder.model_file()] {
        if file.exists() {
            finish_model(&file, settings, task)?;
        }
    }
    Ok(())
}

fn finish_model(file: &Path, settings: &RunSettings, task: &Task) -> Result<()> {
    let mut stored = Snapshot::load_safetensors(file)?;
    if Extras::are_in(&stored) {
        return Ok(());
    }
    let mut model = Model::load_file(settings.clone(), file)?;
    let split = settings.held_out.split(&task.data)?;
    let mut extras = Extras { goal_actions: some_actions(&task.data), ..Extras::default() };
    model.set_extras(extras.clone());
    if settings.read_out == ReadOut::Composed && model.learner().1.states().is_some() {
        extras.roads = model.find_roads(&task.data, &split)?;
        model.set_extras(extras.clone());
    }
    if model.has_distance() {
        let pairs = held_out_pairs(&task.data, &split, GOALS, STARTS);
        let distances = pair_distances(&model, &task.data, &pairs)?;
        let steps = pairs.iter().map(|&(from, to)| (to - from) as f32);
        let pairs: Vec<_> = distances.into_iter().zip(steps).collect();
        extras.calibration = Calibration::fit(&pairs);
        model.set_extras(extras.clone());
        if !model.is_quasimetric() {
            let (violated, triangles) = triangles(&model, &task.data, TRIANGLES)?;
            extras.violations = Some(violated as f32 / triangles.max(1) as f32);
        }
    }
    stored.extend(extras.snapshot(task.dimensions.action()));
    Ok(stored.save_safetensors(file)?)
}

/// Rows `(from, to)` of held-out trajectories, the first before the second, those of one goal
/// together.
///
/// The steps between are those of a first arrival: starts from which the trajectory had come to the
/// goal before are left out, so that walking in circles makes nothing far.
pub(crate) fn held_out_pairs(
    data: &Dataset,
    split: &Split,
    most_goals: usize,
    most_starts: usize,
) -> Vec<(usize, usize)> {
    let walks = split.validation.iter().map(|&walk| data.trajectory(walk));
    let walks: Vec<_> = walks.filter(|rows| rows.len() > 1).collect();
    let apart = |a: usize, b: usize| {
        let (a, b) = (data.observations().row(a), data.observations().row(b));
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
    };
    let steps = walks.iter().take(100).flat_map(|rows| rows.clone().skip(1));
    let mut lengths: Vec<f32> = steps.map(|row| apart(row - 1, row)).collect();
    lengths.sort_by(f32::total_cmp);
    let step = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    let goals = most_goals.div_ceil(walks.len().max(1)).max(1);
    let mut pairs = Vec::new();
    for rows in walks.iter().take(most_goals) {
        let goals = goals.min(rows.len() - 1);
        for number in 1..=goals {
            let goal = rows.start + number * (rows.len() - 1) / goals;
            let mut left = false;
            let first = (rows.start..goal).rev().take_while(|&start| {
                let away = apart(start, goal);
                left |= away > 2.0 * step;
                !left || away > step
            });
            let starts: Vec<usize> = first.collect();
            let every = starts.len().div_ceil(most_starts).max(1);
            pairs.extend(starts.into_iter().step_by(every).map(|start| (start, goal)));
        }
    }
    pairs
}

/// The model's distances between rows of its data.
pub(crate) fn pair_distances(
    model: &Model,
    data: &Dataset,
    pairs: &[(usize, usize)],
) -> Result<Vec<f32>> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let states = |row: fn(&(usize, usize)) -> usize| -> Vec<f32> {
        pairs.iter().flat_map(|pair| model.unscaled(data.observations().row(row(pair)))).collect()
    };
    model.distances(&states(|pair| pair.0), &states(|pair| pair.1))
}

/// How many of so many random triples of states of the data violate the triangle inequality by more
/// than rounding.
pub(crate) fn triangles(model: &Model, data: &Dataset, count: usize) -> Result<(usize, usize)> {
    let mut random = Philox::new(0).stream(0, STREAM);
    let corners: Vec<usize> =
        (0..CORNERS).map(|_| below_u64(random.next_u64(), data.steps() as u64) as usize).collect();
    let pairs: Vec<_> =
        corners.iter().flat_map(|&to| corners.iter().map(move |&from| (from, to))).collect();
    // At [to * CORNERS + from].
    let distances = pair_distances(model, data, &pairs)?;
    let d = |from: usize, to: usize| distances[to * CORNERS + from];
    let mut corner = || below_u64(random.next_u64(), CORNERS as u64) as usize;
    let violated = (0..count).filter(|_| {
        let (x, y, z) = (corner(), corner(), corner());
        let (whole, first, second) = (d(x, z), d(x, y), d(y, z));
        whole > first + second + 1e-5 * (1.0 + first.abs() + second.abs())
    });
    Ok((violated.count(), count))
}

/// Actions of the data, evenly spread.
pub(crate) fn some_actions(data: &Dataset) -> Vec<f32> {
    let count = GOAL_ACTIONS.min(data.steps());
    let row = |number: usize| data.actions().row(number * data.steps() / count).to_vec();
    (0..count).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use cm_replay::Matrix;

    use super::*;

    /// Twice round a circle: no pair is more than one turn apart.
    #[test]
    fn pairs_are_first_arrivals() {
        let circle = (0..40).flat_map(|step| {
            let (y, x) = (step as f32 * std::f32::consts::TAU / 20.0).sin_cos();
            [x, y]
        });
        let states = Matrix::from_vec(40, 2, circle.collect()).unwrap();
        let actions = Matrix::from_vec(40, 1, vec![0.0; 40]).unwrap();
        let data = Dataset::new(states, actions, vec![40]).unwrap();
        let split = Split { training: Vec::new(), validation: vec![0] };
        let pairs = held_out_pairs(&data, &split, 100, 100);
        assert!(pairs.iter().all(|&(from, to)| from < to && to - from < 20), "{pairs:?}");
        assert!(pairs.contains(&(20, 38)) && pairs.len() > 300, "{}", pairs.len());
    }
}
