//! Proximal policy optimisation (Schulman et al. 2017) with generalised advantages (Schulman et al.
//! 2016).

use cm_envs::ant_maze::{ACTION, STATE};
use cm_nn::{
    Activation, Adam, AdamSettings, DfdxBackend, Fan, Initialiser, Linear, Matrix, Mlp,
    MlpSettings, Over, Parameter, Parameters, Snapshot, Spread, Var, gradients,
};
use cm_random::{Philox, below_u64};
use rand_core::Rng;

use super::herd::Experience;
use super::inputs::Inputs;
use crate::Result;
use crate::expert::policy::{Actions, BOUNDS};

/// The stream that shuffles experience.
const ORDER: u32 = 0x224;

/// How to learn. The defaults are what the clean expert was trained with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
    /// How actions are drawn.
    pub(super) actions: Actions,
    /// What the means of a clipped policy are multiplied by where a squashed one goes on from it:
    /// hips, ankles.
    pub(super) gain: [f32; 2],
    /// Width of the two hidden layers.
    pub(super) hidden: usize,
    pub(super) learning_rate: f32,
    pub(super) discount: f32,
    /// Decay of generalised advantages.
    pub(super) lambda: f32,
    /// How far a density may move from where it was, as a ratio.
    pub(super) clip: f32,
    /// Times that all experience is gone through.
    pub(super) epochs: usize,
    /// Parts that it is cut into each time.
    pub(super) batches: usize,
    /// Weight of the policy's entropy.
    pub(super) entropy: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            actions: Actions::Clipped,
            gain: [1.0; 2],
            hidden: 128,
            learning_rate: 5e-4,
            discount: 0.97,
            lambda: 0.95,
            clip: 0.2,
            epochs: 4,
            batches: 8,
            entropy: 1e-3,
        }
    }
}

/// A policy, a value function, and what moves them.
pub(super) struct Learner {
    settings: Settings,
    backend: DfdxBackend,
    parameters: Parameters<DfdxBackend>,
    adam: Adam<DfdxBackend>,
    policy: Network,
    value: Network,
    deviations: Deviations,
    pub(super) inputs: Inputs,
    philox: Philox,
}

/// Where the policy's standard deviations come from.
enum Deviations {
    /// One for each motor, whatever the state.
    Free(Parameter<DfdxBackend>),
    /// From the policy's further outputs, between two bounds, which the file keeps.
    Bounded { low: f32, high: f32 },
}

/// What the policy does in some states, row by row.
#[derive(Default)]
pub(super) struct Acts {
    /// Mean actions, before they are squashed.
    pub(super) means: Vec<f32>,
    /// Their standard deviations.
    pub(super) deviations: Vec<f32>,
    pub(super) values: Vec<f32>,
}

struct Network {
    trunk: Mlp<DfdxBackend>,
    output: Linear<DfdxBackend>,
}

impl Learner {
    pub(super) fn new(settings: Settings, seed: u64) -> Result<Self> {
        let backend = DfdxBackend::new(seed);
        let mut parameters = Parameters::new(&backend);
        // Small first actions, so that exploration starts around none.
        let outputs = match settings.actions {
            Actions::Clipped => ACTION,
            Actions::Squashed { .. } => 2 * ACTION,
        };
        let policy = Network::new(&mut parameters, "policy", settings.hidden, outputs, 1e-4)?;
        let value = Network::new(&mut parameters, "value", settings.hidden, 1, 1.0)?;
        let deviations = match settings.actions {
            Actions::Clipped => {
                let initial = Initialiser::Constant(-0.7);
                Deviations::Free(parameters.create("log_deviation", [1, ACTION], initial)?)
            }
            Actions::Squashed { low, high } => Deviations::Bounded { low, high },
        };
        let adam = Adam::new(&parameters, adam_settings(settings.learning_rate))?;
        let (inputs, philox) = (Inputs::new(), Philox::new(seed));
        Ok(Self { settings, backend, parameters, adam, policy, value, deviations, inputs, philox })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn learning_rate(&self) -> f32 {
        self.adam.settings().learning_rate
    }

    /// What the policy does for raw inputs.
    pub(super) fn act(&self, inputs: &[f32]) -> Result<Acts> {
        if inputs.is_empty() {
            return Ok(Acts::default());
        }
        let inputs = self.normalised(inputs)?;
        let (means, log_deviations) = self.distribution(&inputs)?;
        let deviations: Vec<f32> = log_deviations.to_vec()?.into_iter().map(f32::exp).collect();
        let times = inputs.rows() * ACTION / deviations.len();
        let values = self.value.forward(&inputs)?.to_vec()?;
        Ok(Acts { means: means.to_vec()?, deviations: deviations.repeat(times), values })
    }

    /// Values of raw inputs.
    pub(super) fn values(&self, inputs: &[f32]) -> Result<Vec<f32>> {
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.value.forward(&self.normalised(inputs)?)?.to_vec()?)
    }

    /// Means, and logarithms of the standard deviations: a row for all, or one for each.
    fn distribution(
        &self,
        inputs: &Var<DfdxBackend>,
    ) -> cm_nn::Result<(Var<DfdxBackend>, Var<DfdxBackend>)> {
        let outputs = self.policy.forward(inputs)?;
        match &self.deviations {
            Deviations::Free(log_deviation) => Ok((outputs, log_deviation.value()?)),
            Deviations::Bounded { low, high } => {
                let means = outputs.slice_columns(0..ACTION)?;
                let share = outputs.slice_columns(ACTION..2 * ACTION)?.sigmoid()?;
                Ok((means, share.affine(high - low, *low)?.log()?))
            }
        }
    }

    /// Learns from what a herd did, and says how far the policy moved: an estimate of the
    /// Kullback-Leibler divergence in the last epoch. The learning rate follows that.
    pub(super) fn learn(&mut self, experience: &Experience, iteration: u64) -> Result<f32> {
        let (advantages, returns) = advantages(experience, &self.settings);
        let rows = experience.rewards.len();
        let mut random = self.philox.stream(iteration, ORDER);
        let mut order: Vec<usize> = (0..rows).collect();
        let mut divergence = 0.0;
        for _ in 0..self.settings.epochs {
            for taken in 0..rows {
                let others = (rows - taken) as u64;
                order.swap(taken, taken + below_u64(random.next_u64(), others) as usize);
            }
            divergence = 0.0;
            for batch in order.chunks(rows.div_ceil(self.settings.batches)) {
                let weight = batch.len() as f32 / rows as f32;
                divergence += weight * self.step(experience, &advantages, &returns, batch)?;
            }
        }
        self.inputs.update(&experience.inputs);
        let rate = self.learning_rate();
        self.set_learning_rate(match divergence {
            small if small < 0.008 => (rate * 1.2).min(1e-3),
            large if large > 0.025 => (rate / 1.3).max(1e-5),
            _ => rate,
        })?;
        Ok(divergence)
    }

    /// Everything that an expert's file holds.
    pub(super) fn expert(&self) -> Result<Snapshot> {
        let mut snapshot = self.parameters.snapshot(0)?;
        snapshot.extend(self.inputs.snapshot());
        if let Deviations::Bounded { low, high } = self.deviations {
            let bounds = Matrix { shape: [1, 2], values: vec![low, high] };
            snapshot.extend([(BOUNDS.to_owned(), bounds)]);
        }
        Ok(snapshot)
    }

    /// Goes on from an expert's file; an error says how it does not fit. A squashed policy can go
    /// on from a clipped one: its means, times the gain, become those before squashing.
    pub(super) fn restore_expert(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        self.inputs = Inputs::from_snapshot(snapshot)?;
        let widened;
        let snapshot = match self.deviations {
            Deviations::Bounded { low, high } if snapshot.get(BOUNDS).is_none() => {
                widened = squashed(snapshot, self.settings.gain, low, high);
                &widened
            }
            _ => snapshot,
        };
        let expected = match self.deviations {
            Deviations::Free(_) => None,
            Deviations::Bounded { low, high } => Some(vec![low, high]),
        };
        let found = snapshot.get(BOUNDS).map(|bounds| bounds.values.clone());
        if found != expected {
            return Err(format!("its `{BOUNDS}` are {found:?}, expected {expected:?}"));
        }
        let learned = |name: &str| !name.starts_with("input/") && name != BOUNDS;
        let parameters = snapshot.clone().into_iter().filter(|(name, _)| learned(name));
        self.parameters.restore(0, &parameters.collect()).map_err(|error| error.to_string())
    }

    pub(super) fn optimiser(&self) -> Result<Snapshot> {
        Ok(self.adam.snapshot(0)?)
    }

    pub(super) fn restore_optimiser(&mut self, state: &Snapshot, learning_rate: f32) -> Result<()> {
        self.adam.restore(0, state)?;
        self.set_learning_rate(learning_rate)
    }

    fn set_learning_rate(&mut self, learning_rate: f32) -> Result<()> {
        if learning_rate != self.learning_rate() {
            let state = self.adam.snapshot(0)?;
            self.adam = Adam::new(&self.parameters, adam_settings(learning_rate))?;
            self.adam.restore(0, &state)?;
        }
        Ok(())
    }

    /// One step of Adam on the rows of `batch`.
    fn step(
        &self,
        experience: &Experience,
        advantages: &[f32],
        returns: &[f32],
        batch: &[usize],
    ) -> Result<f32> {
        let rows = |numbers: &[f32], width: usize| {
            let picked = batch.iter().flat_map(|&row| &numbers[row * width..][..width]);
            picked.copied().collect::<Vec<f32>>()
        };
        let column = |numbers: &[f32], width: usize| {
            Var::new(&self.backend, [batch.len(), width], rows(numbers, width))
        };
        let inputs = self.normalised(&rows(&experience.inputs, STATE))?;
        let actions = column(&experience.actions, ACTION)?;
        let old = column(&experience.log_densities, 1)?;
        let (advantages, returns) = (column(advantages, 1)?, column(returns, 1)?);
        let mut divergence = None;
        let (_, mut gradients) = gradients(&self.backend, &[&self.parameters], || {
            let (means, log_deviation) = self.distribution(&inputs)?;
            let z = actions.sub(&means)?.div(&log_deviation.exp()?)?;
            let constant = -0.918_938_5 * ACTION as f32; // -ln(2 pi) / 2 each
            let log_density = z.square()?.scale(-0.5)?.sub(&log_deviation)?.sum(Over::Columns)?;
            let log_ratio = log_density.affine(1.0, constant)?.sub(&old)?;
            let ratio = log_ratio.exp()?;
            let clip = self.settings.clip;
            let clipped = ratio.clamp(1.0 - clip, 1.0 + clip)?.mul(&advantages)?;
            let surrogate = ratio.mul(&advantages)?.minimum(&clipped)?.mean(Over::All)?;
            divergence = Some(ratio.affine(1.0, -1.0)?.sub(&log_ratio)?.mean(Over::All)?);
            let value_error =
                self.value.forward(&inputs)?.sub(&returns)?.square()?.mean(Over::All)?;
            // The policy's entropy before it is squashed, but for a constant.
            let entropy = log_deviation.sum(Over::Columns)?.mean(Over::All)?;
            let entropy = entropy.scale(self.settings.entropy)?;
            value_error.scale(0.5)?.sub(&surrogate)?.sub(&entropy)
        })?;
        self.adam.step(&mut gradients)?;
        divergence.map_or(Ok(0.0), |divergence| Ok(divergence.stop_gradient().item()?))
    }

    fn normalised(&self, inputs: &[f32]) -> Result<Var<DfdxBackend>> {
        let rows = inputs.len() / STATE;
        Ok(Var::new(&self.backend, [rows, STATE], self.inputs.normalised(inputs))?)
    }
}

impl Network {
    /// Two hidden layers with tanh and a linear one, whose weights have variance `scale / inputs`.
    fn new(
        parameters: &mut Parameters<DfdxBackend>,
        name: &str,
        hidden: usize,
        outputs: usize,
        scale: f32,
    ) -> Result<Self> {
        let init =
            |scale| Initialiser::VarianceScaling { scale, fan: Fan::In, shape: Spread::Normal };
        let settings = MlpSettings {
            hidden: vec![hidden; 2],
            activation: Activation::Tanh,
            layer_norm: false,
            initialiser: init(2.0),
        };
        let trunk = Mlp::trunk(parameters, name, STATE, &settings)?;
        let (last, identity) = (format!("{name}/linear_2"), Activation::Identity);
        let output = Linear::new(parameters, &last, [hidden, outputs], init(scale), identity)?;
        Ok(Self { trunk, output })
    }

    fn forward(&self, inputs: &Var<DfdxBackend>) -> cm_nn::Result<Var<DfdxBackend>> {
        self.output.forward(&self.trunk.forward(inputs)?)
    }
}

/// A clipped policy as a squashed one: means times the gain of their joint, deviations in the middle
/// of the bounds.
fn squashed(clipped: &Snapshot, gain: [f32; 2], low: f32, high: f32) -> Snapshot {
    let kept = clipped.clone().into_iter().filter(|(name, _)| name != "log_deviation");
    let mut entries: Vec<_> = kept.collect();
    for (_, matrix) in entries.iter_mut().filter(|(name, _)| name.starts_with("policy/linear_2/")) {
        let [rows, columns] = matrix.shape;
        let wide = |row: &[f32]| {
            // Motors of hips and ankles take turns.
            let means = row.iter().zip(gain.iter().cycle()).map(|(weight, gain)| gain * weight);
            means.chain([0.0; ACTION]).collect::<Vec<_>>()
        };
        matrix.values = matrix.values.chunks_exact(columns.max(1)).flat_map(wide).collect();
        matrix.shape = [rows, columns + ACTION];
    }
    entries.push((BOUNDS.to_owned(), Matrix { shape: [1, 2], values: vec![low, high] }));
    entries.into_iter().collect()
}

fn adam_settings(learning_rate: f32) -> AdamSettings {
    AdamSettings { learning_rate, clip: Some(0.5), ..AdamSettings::default() }
}

/// Generalised advantages, normalised to mean 0 and variance 1, and the returns that the value
/// function should give.
fn advantages(experience: &Experience, settings: &Settings) -> (Vec<f32>, Vec<f32>) {
    let ants = experience.last_values.len();
    let mut advantages = vec![0.0; experience.rewards.len()];
    let mut next_values = experience.last_values.clone();
    let mut later = vec![0.0; ants];
    for row in (0..advantages.len()).rev() {
        let ant = row % ants;
        let goes_on = if experience.ended[row] { 0.0 } else { 1.0 };
        let value = experience.values[row];
        let surprise =
            experience.rewards[row] + settings.discount * goes_on * next_values[ant] - value;
        later[ant] = surprise + settings.discount * settings.lambda * goes_on * later[ant];
        advantages[row] = later[ant];
        next_values[ant] = value;
    }
    let returns = advantages.iter().zip(&experience.values).map(|(a, v)| a + v).collect();
    let count = advantages.len().max(1) as f32;
    let mean = advantages.iter().sum::<f32>() / count;
    let variance = advantages.iter().map(|a| (a - mean).powi(2)).sum::<f32>() / count;
    advantages.iter_mut().for_each(|a| *a = (*a - mean) / (variance.sqrt() + 1e-8));
    (advantages, returns)
}
