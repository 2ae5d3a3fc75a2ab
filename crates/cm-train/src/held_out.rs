//! Trajectories that are set aside, and what they say while training goes on.

use std::sync::Arc;

use cm_learner::Learner;
use cm_nn::{Backend, DfdxBackend, Var};
use cm_replay::{Batch, Dataset, Sampler, Split};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, RunSettings, Task};

/// Which share of the trajectories is held out from training, and how training looks at them.
///
/// ```
/// use std::path::PathBuf;
/// use cm_train::{HeldOut, Method, RunSettings};
///
/// // One in four of the trajectories of one's own, and no early end.
/// let mut settings = RunSettings::own_data(Method::Cmd1, PathBuf::from("walks.csv"));
/// settings.held_out = HeldOut { share: 0.25, patience: 0, ..settings.held_out };
/// settings.check()?;
/// settings.held_out.share = 1.0;
/// let error = settings.check().unwrap_err().to_string();
/// assert!(error.contains("held_out.share"), "{error}");
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeldOut {
    /// The share of all trajectories, whole ones; none if 0. At least one of four or more.
    pub share: f64,
    /// The loss on them is looked at every so many steps; never if 0.
    pub every: u64,
    /// Training ends after so many looks without a smaller loss; never if 0.
    pub patience: u64,
    /// How much smaller, in nats, a loss must be to count.
    pub least: f64,
}

impl Default for HeldOut {
    /// Nothing is held out.
    fn default() -> Self {
        Self { share: 0.0, every: 0, patience: 0, least: 0.0 }
    }
}

/// Fewer trajectories than this are all trained on.
const FEWEST: usize = 4;

impl HeldOut {
    /// Refuses settings outside their ranges.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |setting: &str, expected, found: f64| {
            let (setting, found) = (format!("held_out.{setting}"), found.to_string());
            Err(Error::Setting { setting, expected, found })
        };
        if !(0.0..1.0).contains(&self.share) {
            return refuse("share", "at least 0 and below 1", self.share);
        }
        if !(self.least >= 0.0 && self.least.is_finite()) {
            return refuse("least", "finite and not negative", self.least);
        }
        Ok(())
    }

    /// Which trajectories are trained on and which are not. The same for every seed.
    ///
    /// Nothing is held out of fewer than four trajectories, nor if what is left has no transitions.
    ///
    /// ```
    /// use cm_replay::{Dataset, Matrix};
    /// use cm_train::HeldOut;
    ///
    /// let rows = || Matrix::from_vec(40, 1, vec![0.0; 40]);
    /// let data = Dataset::new(rows()?, rows()?, (1..=8).map(|end| 5 * end).collect())?;
    /// let split = HeldOut { share: 0.1, ..HeldOut::default() }.split(&data)?;
    /// assert_eq!((split.training.len(), split.validation.len()), (7, 1));
    /// assert!(HeldOut::default().split(&data)?.validation.is_empty());
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn split(&self, data: &Dataset) -> Result<Split> {
        let count = data.trajectories();
        if self.share <= 0.0 || count < FEWEST {
            return Ok(Split { training: (0..count).collect(), validation: Vec::new() });
        }
        let share = self.share.max(1.0 / count as f64);
        let split = data.split(share, 0)?;
        let moves = |&trajectory: &usize| data.trajectory(trajectory).len() > 1;
        match split.training.iter().any(moves) && split.validation.iter().any(moves) {
            true => Ok(split),
            false => Ok(Split { training: (0..count).collect(), validation: Vec::new() }),
        }
    }

    /// Draws training batches.
    pub(crate) fn sampler(settings: &RunSettings, task: &Task) -> Result<Sampler> {
        let (data, goals, seed) = (task.data.clone(), settings.goals, settings.seed);
        let split = settings.held_out.split(&data)?;
        if split.validation.is_empty() {
            return Ok(Sampler::new(data, goals, seed)?);
        }
        Ok(Sampler::of_trajectories(data, &split.training, goals, seed)?)
    }
}

/// How well goals are told from others, on some batches of 256 rows.
///
/// ```
/// use cm_train::Contrast;
///
/// // What a distance that knows nothing reaches: every goal of a batch looks the same.
/// let chance = Contrast { loss: 256_f64.ln(), accuracy: 0.5 };
/// assert!(Contrast { loss: 4.5, accuracy: 0.87 }.loss < chance.loss);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Contrast {
    /// The contrastive loss, in nats.
    pub loss: f64,
    /// How often a state's own goal has a larger logit than another's; 0.5 by chance.
    pub accuracy: f64,
}

/// What was found on the training trajectories and on those held out.
///
/// ```
/// use cm_train::{Contrast, Validation};
///
/// let found = Validation {
///     training: Contrast { loss: 4.1, accuracy: 0.9 },
///     held_out: Contrast { loss: 4.5, accuracy: 0.87 },
/// };
/// // By how much trajectories are learned by heart.
/// assert!((found.held_out.loss - found.training.loss - 0.4).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validation {
    /// On trajectories that were trained on.
    pub training: Contrast,
    /// On trajectories that were not.
    pub held_out: Contrast,
}

/// Batches of both kinds, the same at every look.
pub(crate) struct Validator {
    training: Vec<Rows>,
    held_out: Vec<Rows>,
    state: usize,
}

/// States and goals of a batch.
struct Rows {
    states: Vec<f32>,
    goals: Vec<f32>,
}

/// Batches of each kind, and rows of each.
const BATCHES: u64 = 8;
const ROWS: usize = 256;
/// Keeps these batches from being those of training.
const SEED: u64 = 0x4ed1_0a7e;

impl Validator {
    /// None if nothing is held out.
    pub(crate) fn new(settings: &RunSettings, task: &Task) -> Result<Option<Self>> {
        let split = settings.held_out.split(&task.data)?;
        if split.validation.is_empty() {
            return Ok(None);
        }
        let batches = |trajectories: &[usize]| -> Result<Vec<Rows>> {
            let data: Arc<Dataset> = task.data.clone();
            let sampler =
                Sampler::of_trajectories(data, trajectories, settings.goals, settings.seed ^ SEED)?;
            let batch = |step| {
                let mut batch = Batch::new(&task.data, ROWS);
                sampler.fill(step, &mut batch)?;
                Ok(Rows { states: batch.observations, goals: batch.goals })
            };
            (0..BATCHES).map(batch).collect()
        };
        Ok(Some(Self {
            training: batches(&split.training)?,
            held_out: batches(&split.validation)?,
            state: task.dimensions.state(),
        }))
    }

    /// None if the learner's distance between states is not learned by contrast.
    pub(crate) fn look(
        &self,
        backend: &DfdxBackend,
        learner: &dyn Learner<DfdxBackend>,
    ) -> Result<Option<Validation>> {
        let [training, held_out] = [&self.training, &self.held_out]
            .map(|batches| contrast(backend, learner, batches, self.state));
        Ok(training?.zip(held_out?).map(|(training, held_out)| Validation { training, held_out }))
    }
}

fn contrast<B: Backend>(
    backend: &B,
    learner: &dyn Learner<B>,
    batches: &[Rows],
    width: usize,
) -> Result<Option<Contrast>> {
    let Some(states) = learner.states() else { return Ok(None) };
    let (mut loss, mut right, mut compared, mut rows) = (0.0, 0.0, 0.0_f64, 0);
    for batch in batches {
        let var =
            |values: &Vec<f32>| Var::new(backend, [values.len() / width, width], values.clone());
        let logits = states.logits(&var(&batch.states)?, &var(&batch.goals)?)?;
        let Some(logits) = logits else { return Ok(None) };
        let count = logits.rows();
        for (row, logits) in logits.to_vec()?.chunks_exact(count).enumerate() {
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = logits.iter().map(|&x| f64::from(x - largest).exp()).sum();
            loss += sum.ln() - f64::from(logits[row] - largest);
            let others = logits.iter().enumerate().filter(|(column, _)| *column != row);
            right += others.filter(|(_, other)| **other < logits[row]).count() as f64;
            compared += (count - 1) as f64;
        }
        rows += count;
    }
    Ok(Some(Contrast { loss: loss / rows as f64, accuracy: right / compared.max(1.0) }))
}
