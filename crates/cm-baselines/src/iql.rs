//! Implicit Q-learning (Kostrikov, Nair and Levine 2022) with goals: the value of the best actions *in the data*, and a policy that repeats them.
//!
//! Equation numbers are those of the IQL paper. Nothing here asks for the value of an action that was not taken, so nothing is
//! extrapolated: `V(s, g)` is an upper expectile of `Q(s, a, g)` over the actions taken at `s`, `Q(s, a, g)` regresses to `reward + discount V(s', g)`,
//! and the policy imitates the data with weights that grow with the advantage `Q - V`.

use cm_nn::{
    Adam, AdamSettings, Backend, Ema, Mlp, MlpSettings, Over, Parameters, Snapshot, Twin, Var,
    gradients,
};
use serde::{Deserialize, Serialize};

use crate::check::{fraction, require};
use crate::reward::squared_error;
use crate::state::{self, Part};
use crate::{Batch, Metrics, Result, Reward, Sizes};

/// The expectile loss of Eq. 5: `mean |expectile - 1(u < 0)| u^2`.
///
/// Its minimiser over a constant `v` with `u = x - v` is the mean of `x` at expectile 1/2 and tends to the largest `x` at 1.
pub fn expectile_loss<B: Backend>(u: &Var<B>, expectile: f32) -> cm_nn::Result<Var<B>> {
    let above = u.relu()?.square()?.scale(expectile)?;
    let below = u.neg()?.relu()?.square()?.scale(1.0 - expectile)?;
    above.add(&below)?.mean(Over::All)
}

/// Settings of implicit Q-learning. The defaults are the IQL paper's for locomotion; see [`antmaze`](Self::antmaze).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IqlSettings {
    /// Network of `V(s, g)` and of both `Q(s, a, g)`; default two layers of 256, ReLU.
    pub network: MlpSettings,
    /// What a transition earns; default -1 until the goal is reached.
    pub reward: Reward,
    /// Discount; default 0.99.
    pub discount: f32,
    /// Which expectile of the actions' values is the state's value: 1/2 is the mean, towards 1 the largest. Default 0.7.
    pub expectile: f32,
    /// How much of the target critics stays at each step; default 0.995.
    pub target_decay: f32,
    /// What moves `V`; default learning rate 3e-4.
    pub value_optimiser: AdamSettings,
    /// What moves `Q`; default learning rate 3e-4.
    pub critic_optimiser: AdamSettings,
}

impl Default for IqlSettings {
    fn default() -> Self {
        let optimiser = AdamSettings { learning_rate: 3e-4, ..Default::default() };
        Self {
            network: MlpSettings { hidden: vec![256; 2], ..Default::default() },
            reward: Reward::StepCost,
            discount: 0.99,
            expectile: 0.7,
            target_decay: 0.995,
            value_optimiser: optimiser,
            critic_optimiser: optimiser,
        }
    }
}

impl IqlSettings {
    /// The IQL paper's settings for AntMaze, which needs stitching: expectile 0.9.
    pub fn antmaze() -> Self {
        Self { expectile: 0.9, ..Default::default() }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        fraction("discount", self.discount)?;
        let expectile = self.expectile;
        require(expectile > 0.0 && expectile < 1.0, "expectile", "in (0, 1)", expectile)?;
        fraction("target_decay", self.target_decay)?;
        self.value_optimiser.check()?;
        Ok(self.critic_optimiser.check()?)
    }
}

/// `V(s, g)` and two `Q(s, a, g)` with their slow copies.
pub struct IqlCritic<B: Backend> {
    settings: IqlSettings,
    sizes: Sizes,
    value_parameters: Parameters<B>,
    critic_parameters: Parameters<B>,
    target_parameters: Parameters<B>,
    value: Mlp<B>,
    critics: Twin<Mlp<B>>,
    targets: Twin<Mlp<B>>,
    value_optimiser: Adam<B>,
    critic_optimiser: Adam<B>,
    target_update: Ema<B>,
}

impl<B: Backend> IqlCritic<B> {
    /// With fresh parameters drawn under `seed`.
    pub fn new(backend: &B, seed: u64, sizes: Sizes, settings: IqlSettings) -> Result<Self> {
        settings.check()?;
        let network = &settings.network;
        let [mut value_parameters, mut critic_parameters, mut target_parameters] =
            [0; 3].map(|_| Parameters::new(backend, seed));
        let value = Mlp::new(&mut value_parameters, "value", 2 * sizes.state, network, 1)?;
        let twin = |parameters: &mut Parameters<B>| {
            let inputs = 2 * sizes.state + sizes.action;
            Twin::new("critic", |name| Mlp::new(parameters, name, inputs, network, 1))
        };
        let critics = twin(&mut critic_parameters)?;
        let targets = twin(&mut target_parameters)?;
        Ok(Self {
            sizes,
            value,
            critics,
            targets,
            value_optimiser: Adam::new(&value_parameters, settings.value_optimiser)?,
            critic_optimiser: Adam::new(&critic_parameters, settings.critic_optimiser)?,
            target_update: Ema::new(&target_parameters, &critic_parameters, settings.target_decay)?,
            value_parameters,
            critic_parameters,
            target_parameters,
            settings,
        })
    }

    /// One step on `V` (Eq. 5), then on both `Q` (Eq. 6), then on the slow copies.
    pub fn step(&self, batch: &Batch<B>) -> Result<Metrics<B>> {
        batch.check(self.sizes)?;
        let Batch { state, action, next_state, goal, reached, .. } = batch;
        let backend = self.value_parameters.backend();
        let mut metrics = Metrics::default();

        let taken = self.action_value(state, action, goal)?;
        let (loss, mut gradients_) = gradients(backend, &[&self.value_parameters], || {
            let value = self.value(state, goal)?;
            metrics.note("value", &value.mean(Over::All)?);
            expectile_loss(&taken.sub(&value)?, self.settings.expectile)
        })?;
        self.value_optimiser.step(&mut gradients_)?;
        metrics.note("value_loss", &loss);

        let next_value = self.value(next_state, goal)?;
        let target = self.settings.reward.target(reached, &next_value, self.settings.discount)?;
        let input = Var::concat_columns(&[state, action, goal])?;
        let (loss, mut gradients_) = gradients(backend, &[&self.critic_parameters], || {
            let [first, second] = self.critics.map(|critic| critic.forward(&input))?;
            squared_error(&first, &target)?.add(&squared_error(&second, &target)?)
        })?;
        self.critic_optimiser.step(&mut gradients_)?;
        metrics.note("critic_loss", &loss);

        self.target_update.step()?;
        Ok(metrics)
    }

    /// `V(s, g)`, `[n, 1]`.
    pub fn value(&self, state: &Var<B>, goal: &Var<B>) -> cm_nn::Result<Var<B>> {
        self.value.forward(&Var::concat_columns(&[state, goal])?)
    }

    /// The smaller of the two slow `Q(s, a, g)`, `[n, 1]`.
    pub fn action_value(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
    ) -> cm_nn::Result<Var<B>> {
        let input = Var::concat_columns(&[state, action, goal])?;
        let [first, second] = self.targets.map(|critic| critic.forward(&input))?;
        first.minimum(&second)
    }

    /// Everything that changes in training.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(state::snapshot(&self.parts())?)
    }

    /// Goes back to a snapshot; nothing is changed if it does not fit.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        Ok(state::restore(&self.parts(), snapshot)?)
    }

    fn parts(&self) -> Vec<(&'static str, Part<'_, B>)> {
        vec![
            ("value/", Part::Parameters(&self.value_parameters)),
            ("critic/", Part::Parameters(&self.critic_parameters)),
            ("target/", Part::Parameters(&self.target_parameters)),
            ("value-adam/", Part::Adam(&self.value_optimiser)),
            ("critic-adam/", Part::Adam(&self.critic_optimiser)),
        ]
    }
}
