//! A policy that walks in a given direction: normalised inputs, two hidden layers with tanh, and an action.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use cm_envs::ant_maze::{ACTION, STATE};
use cm_nn::Snapshot;

/// Added to the variance of an input before its root is taken.
pub(super) const VARIANCE_FLOOR: f32 = 1e-6;
/// Normalised inputs are clipped to this.
const INPUT_LIMIT: f32 = 10.0;

/// The walking policy of `datasets/`, or one of the same form.
#[derive(Clone, Debug)]
pub(crate) struct Expert {
    mean: Vec<f32>,
    scale: Vec<f32>,
    layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
struct Layer {
    /// `[inputs, outputs]`, row by row.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Expert {
    /// The one that is shipped.
    pub(crate) fn shipped() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .with_file_name("datasets")
            .join("ant_expert.safetensors")
    }

    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("could not read the expert {}", path.display());
        let bytes = std::fs::read(path).with_context(context)?;
        let snapshot = Snapshot::from_safetensors(&bytes).with_context(context)?;
        Self::from_snapshot(&snapshot).with_context(context)
    }

    pub(crate) fn from_snapshot(snapshot: &Snapshot) -> anyhow::Result<Self> {
        let matrix = |name: &str, shape: [usize; 2]| {
            let matrix = snapshot.get(name).with_context(|| format!("it has no `{name}`"))?;
            ensure!(
                matrix.shape == shape,
                "`{name}` has shape {:?}, expected {shape:?}",
                matrix.shape
            );
            let finite = matrix.values.iter().all(|value| value.is_finite());
            ensure!(finite, "`{name}` holds numbers that are not finite");
            Ok(matrix.values.clone())
        };
        let variance = matrix("input/variance", [1, STATE])?;
        ensure!(
            variance.iter().all(|&variance| variance >= 0.0),
            "`input/variance` holds negative numbers"
        );
        let width = |index: usize| {
            let name = format!("policy/linear_{index}/b");
            snapshot
                .get(&name)
                .map(|bias| bias.shape[1])
                .with_context(|| format!("it has no `{name}`"))
        };
        let widths = [STATE, width(0)?, width(1)?, ACTION];
        let layer = |index: usize| {
            let [inputs, outputs] = [widths[index], widths[index + 1]];
            let name = |part: &str| format!("policy/linear_{index}/{part}");
            let weight = matrix(&name("w"), [inputs, outputs])?;
            anyhow::Ok(Layer { weight, bias: matrix(&name("b"), [1, outputs])? })
        };
        Ok(Self {
            mean: matrix("input/mean", [1, STATE])?,
            scale: variance
                .iter()
                .map(|variance| (variance + VARIANCE_FLOOR).sqrt().recip())
                .collect(),
            layers: (0..3).map(layer).collect::<anyhow::Result<_>>()?,
        })
    }

    /// The mean action for what [`cm_envs::ant_maze::policy_input`] gives.
    pub(crate) fn act(&self, input: &[f32; STATE], action: &mut [f32; ACTION]) {
        let mut values: Vec<f32> = normalise(input, &self.mean, &self.scale).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let mut next = layer.bias.clone();
            for (&value, row) in values.iter().zip(layer.weight.chunks_exact(next.len())) {
                for (sum, weight) in next.iter_mut().zip(row) {
                    *sum += value * weight;
                }
            }
            if index + 1 < self.layers.len() {
                next.iter_mut().for_each(|value| *value = value.tanh());
            }
            values = next;
        }
        for (action, value) in action.iter_mut().zip(values) {
            *action = value.clamp(-1.0, 1.0);
        }
    }
}

/// Inputs in units of their standard deviations.
pub(super) fn normalise(input: &[f32], mean: &[f32], scale: &[f32]) -> impl Iterator<Item = f32> {
    let numbers = input.iter().zip(mean).zip(scale);
    numbers.map(|((x, mean), scale)| ((x - mean) * scale).clamp(-INPUT_LIMIT, INPUT_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same network in NumPy.
    #[test]
    fn the_shipped_expert_acts_as_numpy_says() {
        let input = [
            0.274, -0.46, -0.918, -0.967, 0.627, 0.826, 0.213, 0.459, 0.087, 0.87, 0.632, -0.995,
            0.715, -0.933, 0.459, -0.649, 0.726, 0.083, -0.401, -0.155, -0.943, -0.751, 0.341,
            0.294, 0.231, -0.233, 0.994, 0.962, 0.371,
        ];
        let expected = [0.298_333_4, -1.0, 1.0, 1.0, 0.244_676_9, 0.818_544_8, -0.621_790_2, -1.0];
        let mut action = [0.0; ACTION];
        Expert::load(&Expert::shipped()).unwrap().act(&input, &mut action);
        for (found, expected) in action.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{action:?}");
        }
    }

    #[test]
    fn broken_experts_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("expert.safetensors");
        let refused = |part: &str| {
            let message = format!("{:#}", Expert::load(&path).unwrap_err());
            assert!(message.contains("expert.safetensors") && message.contains(part), "{message}");
        };
        refused("could not read");
        std::fs::write(&path, "not an expert").unwrap();
        refused("could not read");
        let good = Snapshot::from_safetensors(&std::fs::read(Expert::shipped()).unwrap()).unwrap();
        let damaged = |name: &str, change: &dyn Fn(&mut cm_nn::Matrix)| {
            let mut entries: Vec<_> = good.clone().into_iter().collect();
            for (_, matrix) in entries.iter_mut().filter(|(found, _)| found == name) {
                change(matrix);
            }
            let snapshot: Snapshot = entries.into_iter().collect();
            snapshot.save_safetensors(&path).unwrap();
        };
        let without: Snapshot =
            good.clone().into_iter().filter(|(name, _)| name != "input/mean").collect();
        without.save_safetensors(&path).unwrap();
        refused("no `input/mean`");
        damaged("policy/linear_1/w", &|matrix| matrix.values[5] = f32::NAN);
        refused("`policy/linear_1/w` holds numbers that are not finite");
        damaged("policy/linear_2/w", &|matrix| matrix.shape = [matrix.shape[1], matrix.shape[0]]);
        refused("`policy/linear_2/w` has shape [8, 128], expected [128, 8]");
        damaged("input/variance", &|matrix| matrix.values[0] = -1.0);
        refused("negative");
    }
}
