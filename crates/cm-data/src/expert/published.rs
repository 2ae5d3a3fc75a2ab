//! The walking policy that D4RL has published, a relative of the one that made its files.
//!
//! It is not part of this project. Its parameters are read under the names that they have in
//! PyTorch, from a safetensors file: hidden layers `fc0` and `fc1` with ReLU, means from `last_fc`,
//! logarithms of standard deviations from `last_fc_log_std`. Weights are `[outputs, inputs]`. The
//! direction to walk in has length 10.

use cm_envs::ant_maze::{ACTION, STATE};
use cm_nn::Snapshot;

use super::policy::{Deviations, Expert, Input, Layer, matrix, width};

/// The length of the direction among its inputs.
const DIRECTION: f32 = 10.0;

/// Whether `snapshot` looks like it.
pub(super) fn is_published(snapshot: &Snapshot) -> bool {
    snapshot.get("last_fc.weight").is_some()
}

pub(super) fn from_snapshot(snapshot: &Snapshot) -> Result<Expert, String> {
    let widths = [STATE, width(snapshot, "fc0.bias")?, width(snapshot, "fc1.bias")?, ACTION];
    let layer = |name: &str, index: usize| {
        let [inputs, outputs] = [widths[index], widths[index + 1]];
        let weight = matrix(snapshot, &format!("{name}.weight"), [outputs, inputs])?;
        let bias = matrix(snapshot, &format!("{name}.bias"), [1, outputs])?;
        Ok::<_, String>((weight, bias))
    };
    let hidden = |name, index| layer(name, index).map(|layer| joined(&[layer], widths[index]));
    let (means, logarithms) = (layer("last_fc", 2)?, layer("last_fc_log_std", 2)?);
    let mut scale = vec![1.0; STATE];
    scale[STATE - 2..].fill(DIRECTION);
    Ok(Expert {
        sha256: String::new(),
        input: Input { mean: vec![0.0; STATE], scale, limit: f32::INFINITY },
        layers: vec![hidden("fc0", 0)?, hidden("fc1", 1)?, joined(&[means, logarithms], widths[2])],
        activation: |value| value.max(0.0),
        deviations: Deviations::Exponential { lowest: -20.0, highest: 2.0 },
    })
}

/// One layer with the outputs of several, one's after another's.
fn joined(layers: &[(Vec<f32>, Vec<f32>)], inputs: usize) -> Layer {
    let rows = || layers.iter().flat_map(|(weight, _)| weight.chunks_exact(inputs));
    let weight = (0..inputs).flat_map(|input| rows().map(move |row| row[input])).collect();
    Layer { weight, bias: layers.iter().flat_map(|(_, bias)| bias.clone()).collect() }
}

#[cfg(test)]
mod tests {
    use cm_nn::Matrix;
    use cm_random::Philox;

    use super::*;
    use crate::expert::ExpertFile;

    const WIDTHS: [usize; 2] = [3, 2];

    /// Parameters in PyTorch's layout: all weights 0 but for a few.
    fn network() -> Vec<(String, Matrix)> {
        let mut matrices = Vec::new();
        let [first, second] = WIDTHS;
        let layers = [
            ("fc0", first, STATE),
            ("fc1", second, first),
            ("last_fc", ACTION, second),
            ("last_fc_log_std", ACTION, second),
        ];
        for (name, outputs, inputs) in layers {
            let weight = Matrix { shape: [outputs, inputs], values: vec![0.0; outputs * inputs] };
            matrices.push((format!("{name}.weight"), weight));
            let bias = Matrix { shape: [1, outputs], values: vec![0.0; outputs] };
            matrices.push((format!("{name}.bias"), bias));
        }
        let mut set = |name: &str, row: usize, column: usize, value: f32| {
            let (_, matrix) = matrices.iter_mut().find(|(found, _)| found == name).unwrap();
            matrix.values[row * matrix.shape[1] + column] = value;
        };
        set("fc0.weight", 0, 0, 2.0); // twice the height
        set("fc0.weight", 1, STATE - 2, -0.1); // the direction's x, backwards
        set("fc0.weight", 2, STATE - 1, 0.1); // its y
        set("fc1.weight", 0, 0, 1.0);
        set("fc1.weight", 1, 1, 3.0);
        set("fc1.weight", 1, 2, 0.5);
        set("fc1.bias", 0, 1, 0.25);
        set("last_fc.weight", 4, 0, -1.0);
        set("last_fc.weight", 5, 1, 1.0);
        set("last_fc.bias", 0, 7, 0.5);
        set("last_fc_log_std.weight", 5, 1, -100.0);
        set("last_fc_log_std.bias", 0, 6, 100.0);
        matrices
    }

    fn open(matrices: Vec<(String, Matrix)>) -> crate::Result<Expert> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.safetensors");
        matrices.into_iter().collect::<Snapshot>().save_safetensors(&path).unwrap();
        Expert::open(&ExpertFile::File(path))
    }

    #[test]
    fn its_layers_are_put_together_as_in_pytorch() {
        let expert = open(network()).unwrap();
        let (mut input, mut action) = ([0.0; STATE], [0.0; ACTION]);
        (input[0], input[20]) = (0.75, 50.0);
        (input[STATE - 2], input[STATE - 1]) = (0.6, 0.8);
        // Hidden: 1.5, 0 (cut off by ReLU), 0.8, then 1.5 and 0.4 + 0.25.
        let mut expected = [0.0, 0.0, 0.0, 0.0, -1.5_f32, 0.65, 0.0, 0.5].map(f32::tanh);
        expert.act(&input, &mut action);
        assert!(expected.iter().zip(&action).all(|(a, b)| (a - b).abs() < 1e-6), "{action:?}");

        // The logarithms of the deviations are 0 but for the motors 5 (-65) and 6 (100).
        let mut random = Philox::new(5).stream(0, 0);
        let mut sums = [0.0; ACTION];
        for _ in 0..2_000 {
            expert.sample(&input, &mut random, &mut action);
            assert!(action.iter().all(|torque| torque.abs() <= 1.0));
            assert!((action[5] - expected[5]).abs() < 1e-6, "{action:?}");
            for (sum, torque) in sums.iter_mut().zip(action) {
                *sum += torque * torque / 2_000.0;
            }
        }
        // Mean squares of tanh(m + d z), by numerical integration.
        expected = [0.394, 0.394, 0.394, 0.394, 0.688, 0.327, 0.893, 0.438];
        assert!(expected.iter().zip(&sums).all(|(a, b)| (a - b).abs() < 0.03), "{sums:?}");
    }

    #[test]
    fn broken_ones_are_named() {
        let refused = |name: &str, change: &dyn Fn(&mut Matrix), part: &str| {
            let mut matrices = network();
            let (_, matrix) = matrices.iter_mut().find(|(found, _)| found == name).unwrap();
            change(matrix);
            let message = open(matrices).unwrap_err().to_string();
            assert!(message.contains("policy.safetensors: not an expert"), "{message}");
            assert!(message.contains(part), "{message}");
        };
        refused("fc1.weight", &|matrix| matrix.values[3] = f32::NAN, "`fc1.weight` holds numbers");
        let transposed = |matrix: &mut Matrix| matrix.shape.reverse();
        refused("fc0.weight", &transposed, "`fc0.weight` has shape [29, 3], expected [3, 29]");
        let mut matrices = network();
        matrices.retain(|(name, _)| name != "last_fc_log_std.bias");
        let message = open(matrices).unwrap_err().to_string();
        assert!(message.contains("it has no `last_fc_log_std.bias`"), "{message}");
    }
}
