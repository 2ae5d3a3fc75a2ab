//! A policy that walks in a given direction: two hidden layers and a distribution of actions.

use std::fmt;
use std::path::{Path, PathBuf};

use cm_envs::ant_maze::{ACTION, Maze, Recipe, STATE};
use cm_nn::Snapshot;
use cm_random::{Stream, normal_pair};
use rand_core::Rng;

use super::{mirror, published};
use crate::{Error, Result, sha256_of_bytes};

/// Added to the variance of an input before its root is taken.
pub(super) const VARIANCE_FLOOR: f32 = 1e-6;
/// Normalised inputs are clipped to this.
pub(super) const INPUT_LIMIT: f32 = 10.0;

/// The name of the bounds of standard deviations in the file of a squashed policy.
pub(super) const BOUNDS: &str = "policy/deviation_bounds";

/// How a policy draws its actions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Actions {
    /// From a normal distribution whose standard deviations do not depend on the state; clipped.
    Clipped,
    /// `tanh(mean + deviation z)`, z being normal. The state decides on mean and deviation.
    Squashed {
        /// The least standard deviation.
        low: f32,
        /// The largest.
        high: f32,
    },
}

impl fmt::Display for Actions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clipped => formatter.write_str("actions clipped"),
            Self::Squashed { low, high } => {
                write!(formatter, "actions squashed, deviations {low} to {high}")
            }
        }
    }
}

/// The experts that come with this crate.
const D4RL: &[u8] = include_bytes!("../../expert/ant_d4rl.safetensors");
const D4RL_UMAZE: &[u8] = include_bytes!("../../expert/ant_d4rl_umaze.safetensors");
const CLEAN: &[u8] = include_bytes!("../../expert/ant_expert.safetensors");

/// Where an expert comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpertFile {
    /// From this crate: the one whose data of this maze is as hard as D4RL's. In the medium maze it
    /// is that of the large one as a mirror shows it.
    D4rl(Maze),
    /// From this crate: the one that seldom falls and knows its way around walls.
    Clean,
    /// From a file of the same form, or of the form of the policy that D4RL has published.
    File(PathBuf),
}

impl ExpertFile {
    /// The expert that comes with this crate for a recipe and a maze.
    ///
    /// ```
    /// use cm_data::expert::ExpertFile;
    /// use cm_envs::ant_maze::{Maze, Recipe};
    ///
    /// let umaze = ExpertFile::of(Recipe::D4rl, Maze::Umaze);
    /// assert_eq!(umaze, ExpertFile::D4rl(Maze::Umaze));
    /// assert_eq!(ExpertFile::of(Recipe::Clean, Maze::Umaze), ExpertFile::Clean);
    /// ```
    pub fn of(recipe: Recipe, maze: Maze) -> Self {
        match recipe {
            Recipe::D4rl | Recipe::D4rlCode => Self::D4rl(maze),
            Recipe::Clean => Self::Clean,
        }
    }

    /// The bytes of the file.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        match self {
            Self::D4rl(Maze::Umaze) => Ok(D4RL_UMAZE.to_vec()),
            Self::D4rl(Maze::Large) => Ok(D4RL.to_vec()),
            Self::D4rl(Maze::Medium) => {
                let expert = Snapshot::from_safetensors(D4RL)?;
                Ok(mirror::mirrored(&expert).to_safetensors()?)
            }
            Self::Clean => Ok(CLEAN.to_vec()),
            Self::File(path) => std::fs::read(path).map_err(Error::file("read the expert", path)),
        }
    }

    /// What a message calls it.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::D4rl(_) => Path::new("the shipped expert of D4RL's recipe"),
            Self::Clean => Path::new("the shipped expert of the clean recipe"),
            Self::File(path) => path,
        }
    }
}

/// A walking policy: one that is shipped, one of the same form, or D4RL's own.
///
/// ```
/// use cm_data::expert::{Expert, ExpertFile};
///
/// let expert = Expert::open(&ExpertFile::Clean)?;
/// let (standing, mut action) = ([0.0; 29], [0.0; 8]);
/// expert.act(&standing, &mut action);
/// assert!(action.iter().all(|torque| torque.abs() <= 1.0));
/// # Ok::<(), cm_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expert {
    pub(super) sha256: String,
    pub(super) input: Input,
    pub(super) layers: Vec<Layer>,
    /// Between the layers.
    pub(super) activation: fn(f32) -> f32,
    pub(super) deviations: Deviations,
}

/// What is done to inputs before the first layer.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) mean: Vec<f32>,
    pub(super) scale: Vec<f32>,
    /// What comes of that is clipped to this.
    pub(super) limit: f32,
}

/// Where standard deviations come from.
#[derive(Clone, Debug)]
pub(super) enum Deviations {
    /// One for each motor; actions are clipped.
    Free(Vec<f32>),
    /// From the network's further outputs; actions are squashed.
    Bounded { low: f32, high: f32 },
    /// Their logarithms are the network's further outputs; actions are squashed.
    Exponential { lowest: f32, highest: f32 },
}

#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// `[inputs, outputs]`, row by row.
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

impl Expert {
    /// Reads and checks an expert.
    pub fn open(file: &ExpertFile) -> Result<Self> {
        let bytes = file.read()?;
        let refused =
            |reason: String| Error::content(file.path(), format!("not an expert: {reason}"));
        let snapshot =
            Snapshot::from_safetensors(&bytes).map_err(|error| refused(error.to_string()))?;
        let expert = match published::is_published(&snapshot) {
            true => published::from_snapshot(&snapshot),
            false => Self::from_snapshot(&snapshot),
        };
        Ok(Self { sha256: sha256_of_bytes(&bytes), ..expert.map_err(refused)? })
    }

    /// The checksum of its file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    fn from_snapshot(snapshot: &Snapshot) -> Result<Self, String> {
        let matrix = |name: &str, shape| matrix(snapshot, name, shape);
        let variance = matrix("input/variance", [1, STATE])?;
        if variance.iter().any(|&variance| variance < 0.0) {
            return Err("`input/variance` holds negative numbers".to_owned());
        }
        let width = |index: usize| width(snapshot, &format!("policy/linear_{index}/b"));
        let (deviations, outputs) = match snapshot.get(BOUNDS) {
            None => {
                let logarithms = matrix("log_deviation", [1, ACTION])?;
                (Deviations::Free(logarithms.into_iter().map(f32::exp).collect()), ACTION)
            }
            Some(_) => match matrix(BOUNDS, [1, 2])?[..] {
                [low, high] if 0.0 < low && low <= high => {
                    (Deviations::Bounded { low, high }, 2 * ACTION)
                }
                ref found => return Err(format!("`{BOUNDS}` are {found:?}, expected 0 < a <= b")),
            },
        };
        let widths = [STATE, width(0)?, width(1)?, outputs];
        let layer = |index: usize| {
            let [inputs, outputs] = [widths[index], widths[index + 1]];
            let name = |part: &str| format!("policy/linear_{index}/{part}");
            let weight = matrix(&name("w"), [inputs, outputs])?;
            Ok::<_, String>(Layer { weight, bias: matrix(&name("b"), [1, outputs])? })
        };
        let scale = |variance: &f32| (variance + VARIANCE_FLOOR).sqrt().recip();
        Ok(Self {
            sha256: String::new(),
            input: Input {
                mean: matrix("input/mean", [1, STATE])?,
                scale: variance.iter().map(scale).collect(),
                limit: INPUT_LIMIT,
            },
            layers: (0..3).map(layer).collect::<Result<_, _>>()?,
            activation: f32::tanh,
            deviations,
        })
    }

    /// The mean action for what [`cm_envs::ant_maze::policy_input`] gives; of a squashed policy,
    /// the squashed mean.
    pub fn act(&self, input: &[f32; STATE], action: &mut [f32; ACTION]) {
        let outputs = self.outputs(input);
        for (action, &mean) in action.iter_mut().zip(&outputs) {
            *action = self.carried_out(mean);
        }
    }

    /// An action drawn from the policy.
    pub fn sample(&self, input: &[f32; STATE], random: &mut Stream, action: &mut [f32; ACTION]) {
        let outputs = self.outputs(input);
        let deviation = |index: usize| match &self.deviations {
            Deviations::Free(deviations) => deviations[index],
            Deviations::Bounded { low, high } => {
                low + (high - low) / (1.0 + (-outputs[ACTION + index]).exp())
            }
            &Deviations::Exponential { lowest, highest } => {
                outputs[ACTION + index].clamp(lowest, highest).exp()
            }
        };
        for index in (0..ACTION).step_by(2) {
            let (first, second) = normal_pair(random.next_u32(), random.next_u32());
            for (index, z) in [(index, first), (index + 1, second)] {
                action[index] = self.carried_out(outputs[index] + deviation(index) * z);
            }
        }
    }

    /// An action as `recipe` wants it: drawn, or the mean.
    pub(crate) fn walk(
        &self,
        recipe: Recipe,
        input: &[f32; STATE],
        random: &mut Stream,
        action: &mut [f32; ACTION],
    ) {
        if recipe.samples_actions() {
            self.sample(input, random, action);
        } else {
            self.act(input, action);
        }
    }

    /// What an action before squashing or clipping comes to.
    fn carried_out(&self, action: f32) -> f32 {
        match self.deviations {
            Deviations::Free(_) => action.clamp(-1.0, 1.0),
            Deviations::Bounded { .. } | Deviations::Exponential { .. } => action.tanh(),
        }
    }

    fn outputs(&self, input: &[f32; STATE]) -> Vec<f32> {
        let Input { mean, scale, limit } = &self.input;
        let mut values: Vec<f32> = normalise(input, mean, scale, *limit).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let mut next = layer.bias.clone();
            for (&value, row) in values.iter().zip(layer.weight.chunks_exact(next.len())) {
                for (sum, weight) in next.iter_mut().zip(row) {
                    *sum += value * weight;
                }
            }
            if index + 1 < self.layers.len() {
                next.iter_mut().for_each(|value| *value = (self.activation)(*value));
            }
            values = next;
        }
        values
    }
}

/// The matrix called `name`, of that shape and finite.
pub(super) fn matrix(
    snapshot: &Snapshot,
    name: &str,
    shape: [usize; 2],
) -> Result<Vec<f32>, String> {
    let matrix = snapshot.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
    if matrix.shape != shape {
        return Err(format!("`{name}` has shape {:?}, expected {shape:?}", matrix.shape));
    }
    if matrix.values.iter().any(|value| !value.is_finite()) {
        return Err(format!("`{name}` holds numbers that are not finite"));
    }
    Ok(matrix.values.clone())
}

/// How many numbers the bias called `name` has.
pub(super) fn width(snapshot: &Snapshot, name: &str) -> Result<usize, String> {
    let bias = snapshot.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
    if bias.values.is_empty() {
        return Err(format!("`{name}` is empty"));
    }
    Ok(bias.shape[1])
}

/// Inputs in units of their standard deviations, clipped to `limit`.
pub(super) fn normalise(
    input: &[f32],
    mean: &[f32],
    scale: &[f32],
    limit: f32,
) -> impl Iterator<Item = f32> {
    let numbers = input.iter().zip(mean).zip(scale);
    numbers.map(move |((x, mean), scale)| ((x - mean) * scale).clamp(-limit, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same network in NumPy.
    #[test]
    fn the_clean_expert_acts_as_numpy_says() {
        let input = [
            0.274, -0.46, -0.918, -0.967, 0.627, 0.826, 0.213, 0.459, 0.087, 0.87, 0.632, -0.995,
            0.715, -0.933, 0.459, -0.649, 0.726, 0.083, -0.401, -0.155, -0.943, -0.751, 0.341,
            0.294, 0.231, -0.233, 0.994, 0.962, 0.371,
        ];
        let expected = [0.298_333_4, -1.0, 1.0, 1.0, 0.244_676_9, 0.818_544_8, -0.621_790_2, -1.0];
        let mut action = [0.0; ACTION];
        Expert::open(&ExpertFile::Clean).unwrap().act(&input, &mut action);
        for (found, expected) in action.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{action:?}");
        }
    }

    #[test]
    fn broken_experts_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("expert.safetensors");
        let refused = |part: &str| {
            let message = Expert::open(&ExpertFile::File(path.clone())).unwrap_err().to_string();
            assert!(message.contains("expert.safetensors") && message.contains(part), "{message}");
        };
        refused("could not read");
        std::fs::write(&path, "walks").unwrap();
        refused("not an expert");
        let good = Snapshot::from_safetensors(CLEAN).unwrap();
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
