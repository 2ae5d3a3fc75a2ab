//! Numbers of any size brought to where networks expect them.

use cm_nn::{Matrix as HostMatrix, Snapshot};
use cm_replay::{Dataset, Normalization};

use crate::{Error, Result};

/// States moved and scaled to mean 0 and deviation 1, actions divided by their largest size, each
/// coordinate for itself.
///
/// It is kept with a model, in `scaling/mean`, `scaling/deviation` and `scaling/largest_action` of
/// its safetensors file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    largest_action: Vec<f32>,
}

const PREFIX: &str = "scaling/";

impl Scaling {
    /// What leaves everything as it is.
    pub fn none(states: usize, actions: usize) -> Self {
        let (mean, deviation) = (vec![0.0; states], vec![1.0; states]);
        Self { mean, deviation, largest_action: vec![1.0; actions] }
    }

    /// What brings `data` to size.
    pub fn of(data: &Dataset) -> Self {
        let Normalization { mean, deviation } = Normalization::of(data.observations());
        let mut largest_action = vec![0.0_f32; data.actions().columns()];
        for row in 0..data.steps() {
            for (largest, action) in largest_action.iter_mut().zip(data.actions().row(row)) {
                *largest = largest.max(action.abs());
            }
        }
        let usable = |size: f32| if size > 0.0 { size } else { 1.0 };
        Self { mean, deviation, largest_action: largest_action.into_iter().map(usable).collect() }
    }

    /// Scales whole states in place.
    pub fn states(&self, rows: &mut [f32]) {
        self.coordinates(0, rows, self.mean.len());
    }

    /// Scales, in place, rows that hold `width` of a state's coordinates from coordinate `first`
    /// on.
    pub fn coordinates(&self, first: usize, rows: &mut [f32], width: usize) {
        for row in rows.chunks_exact_mut(width) {
            for (offset, number) in row.iter_mut().enumerate() {
                let at = first + offset;
                *number = (*number - self.mean[at]) / self.deviation[at];
            }
        }
    }

    /// A scaled state in its own units again.
    pub fn unscaled(&self, state: &[f32]) -> Vec<f32> {
        let moved = state.iter().zip(self.mean.iter().zip(&self.deviation));
        moved.map(|(number, (mean, deviation))| number * deviation + mean).collect()
    }

    /// Scales actions in place.
    pub fn actions(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.largest_action.len()) {
            for (number, largest) in row.iter_mut().zip(&self.largest_action) {
                *number /= largest;
            }
        }
    }

    /// Brings a policy's actions back to their own size, in place.
    pub(crate) fn unscale_actions(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.largest_action.len()) {
            for (number, largest) in row.iter_mut().zip(&self.largest_action) {
                *number *= largest;
            }
        }
    }

    /// A scaled action in its own units again.
    pub fn unscaled_action(&self, action: &[f32]) -> Vec<f32> {
        let mut action = action.to_vec();
        self.unscale_actions(&mut action);
        action
    }

    /// The data with both scaled: in place, or in one copy of data that is mapped.
    pub(crate) fn apply(&self, data: Dataset) -> Result<Dataset> {
        Ok(data.map_rows(|state| self.states(state), |action| self.actions(action))?)
    }

    /// As matrices to be stored with a model.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let row = |name: &str, values: &[f32]| {
            let matrix = HostMatrix { shape: [1, values.len()], values: values.to_vec() };
            (format!("{PREFIX}{name}"), matrix)
        };
        [
            row("mean", &self.mean),
            row("deviation", &self.deviation),
            row("largest_action", &self.largest_action),
        ]
        .into_iter()
        .collect()
    }

    /// Takes the scaling out of a stored model.
    pub(crate) fn split(stored: Snapshot) -> Result<(Self, Snapshot)> {
        let row = |name: &str| match stored.get(&format!("{PREFIX}{name}")) {
            Some(matrix) => Ok(matrix.values.clone()),
            None => Err(Error::Network(cm_nn::Error::MissingParameter {
                name: format!("{PREFIX}{name}"),
                place: "the model",
            })),
        };
        let scaling = Self {
            mean: row("mean")?,
            deviation: row("deviation")?,
            largest_action: row("largest_action")?,
        };
        if scaling.mean.len() != scaling.deviation.len() {
            return Err(Error::Width {
                what: format!("{PREFIX}deviation"),
                expected: scaling.mean.len(),
                found: scaling.deviation.len(),
            });
        }
        let parameters = stored.into_iter().filter(|(name, _)| !name.starts_with(PREFIX));
        Ok((scaling, parameters.collect()))
    }

    /// Coordinates of a state.
    pub fn state_width(&self) -> usize {
        self.mean.len()
    }

    /// Coordinates of an action.
    pub fn action_width(&self) -> usize {
        self.largest_action.len()
    }
}

#[cfg(test)]
mod tests {
    use cm_replay::{Matrix, ReadOptions, read};

    use super::*;

    /// In place, and from a mapped file in one copy: the same numbers, each scaled by itself.
    #[test]
    fn data_is_scaled_alike_in_memory_and_from_a_mapped_file() {
        let numbers =
            |count: usize, by: f32| (0..count).map(|x| (x as f32 * by).sin() * 7.0 + 3.0).collect();
        let (states, actions): (Vec<f32>, Vec<f32>) = (numbers(300, 0.3), numbers(200, 0.7));
        let data = Dataset::new(
            Matrix::from_vec(100, 3, states.clone()).unwrap(),
            Matrix::from_vec(100, 2, actions.clone()).unwrap(),
            vec![40, 100],
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cmdata");
        data.save(&path).unwrap();
        let mapped = read(&path, &ReadOptions::default()).unwrap();
        assert!(mapped.observations().is_mapped());

        let scaling = Scaling::of(&data);
        assert_eq!(Scaling::of(&mapped), scaling);
        let (scaled, copied) =
            (scaling.apply(data.clone()).unwrap(), scaling.apply(mapped).unwrap());
        assert_eq!(scaled, copied);
        assert!(!copied.observations().is_mapped());
        for (at, (number, state)) in scaled.observations().iter().flatten().zip(&states).enumerate()
        {
            let column = at % 3;
            assert_eq!(*number, (state - scaling.mean[column]) / scaling.deviation[column]);
        }
        for (at, (number, action)) in scaled.actions().iter().flatten().zip(&actions).enumerate() {
            assert_eq!(*number, action / scaling.largest_action[at % 2]);
        }
        assert_eq!(scaled.ends(), [40, 100]);
    }
}
