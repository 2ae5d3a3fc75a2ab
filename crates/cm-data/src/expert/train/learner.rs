//! Proximal policy optimisation (Schulman et al. 2017) with generalised advantages (Schulman et al.
//! 2016).

use cm_envs::ant_maze::{ACTION, STATE};
use cm_nn::{
    Activation, Adam, AdamSettings, DfdxBackend, Fan, Initialiser, Linear, Mlp, MlpSettings, Over,
    Parameter, Parameters, Snapshot, Spread, Var, gradients,
};
use cm_random::{Philox, below_u64};
use rand_core::Rng;

use super::herd::Experience;
use super::inputs::Inputs;
use crate::Result;

/// The stream that shuffles experience.
const ORDER: u32 = 0x224;

/// How to learn. These are the settings that the shipped expert was trained with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
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
    log_deviation: Parameter<DfdxBackend>,
    pub(super) inputs: Inputs,
    philox: Philox,
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
        let policy = Network::new(&mut parameters, "policy", settings.hidden, ACTION, 1e-4)?;
        let value = Network::new(&mut parameters, "value", settings.hidden, 1, 1.0)?;
        let log_deviation =
            parameters.create("log_deviation", [1, ACTION], Initialiser::Constant(-0.7))?;
        let adam = Adam::new(&parameters, adam_settings(settings.learning_rate))?;
        let (inputs, philox) = (Inputs::new(), Philox::new(seed));
        Ok(Self {
            settings,
            backend,
            parameters,
            adam,
            policy,
            value,
            log_deviation,
            inputs,
            philox,
        })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn learning_rate(&self) -> f32 {
        self.adam.settings().learning_rate
    }

    /// Mean actions and values for raw inputs.
    pub(super) fn act(&self, inputs: &[f32]) -> Result<(Vec<f32>, Vec<f32>)> {
        if inputs.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let inputs = self.normalised(inputs)?;
        let (means, values) = (self.policy.forward(&inputs)?, self.value.forward(&inputs)?);
        Ok((means.to_vec()?, values.to_vec()?))
    }

    /// Standard deviations of the policy.
    pub(super) fn deviations(&self) -> Result<Vec<f32>> {
        Ok(self.log_deviation.to_vec()?.into_iter().map(f32::exp).collect())
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
        Ok(snapshot)
    }

    /// Goes on from an expert's file; an error says how it does not fit.
    pub(super) fn restore_expert(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        self.inputs = Inputs::from_snapshot(snapshot)?;
        let parameters =
            snapshot.clone().into_iter().filter(|(name, _)| !name.starts_with("input/"));
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
            let log_deviation = self.log_deviation.value()?;
            let z = actions.sub(&self.policy.forward(&inputs)?)?.div(&log_deviation.exp()?)?;
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
            let entropy = log_deviation.sum(Over::All)?.scale(self.settings.entropy)?;
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
