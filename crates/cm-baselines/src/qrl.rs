//! Quasimetric RL (Wang, Torralba, Isola and Zhang 2023): the largest quasimetric in which no transition is longer than its cost.
//!
//! In a deterministic world the optimal distance `d*(s, g)`, the least cost of getting from `s` to `g`, is the largest quasimetric with
//! `d(s, s') <= cost` for every transition. QRL's Sec. 3.2 makes that a constrained problem over pairs of states and goals drawn apart,
//!
//! > maximise `E phi(d(s, g))` subject to `E max(0, d(s, s') - cost)^2 <= margin`,
//!
//! and solves it by ascent on a multiplier. Its Sec. 3.4 adds a model `T` of where an action leads *in the features of the metric*, held
//! to `T(s, a) ~ s'` by the squared distances between them both ways; a policy is then moved to the actions whose outcome is near the goal.

use cm_nn::{
    Adam, AdamSettings, Backend, Initialiser, Mlp, MlpSettings, Over, Parameter, Parameters, Sgd,
    Snapshot, Var, gradients,
};
use serde::{Deserialize, Serialize};

use crate::check::{positive, require};
use crate::state::{self, Part};
use crate::{Batch, HeadSettings, Metric, MetricSettings, Metrics, Result, Sizes};

/// The stream of the goals' order.
const GOAL_ORDER: u32 = 0x140;

/// Settings of [`Qrl`]. The defaults are those of the 2-D experiment in the authors' script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QrlSettings {
    /// The quasimetric and its networks.
    pub metric: MetricSettings,
    /// How the outcome of an action is predicted.
    pub transition: TransitionSettings,
    /// Distances beyond this are hardly pushed any further; default 500.
    pub push_offset: f32,
    /// How suddenly the push stops there: `phi(d) = -softplus(sharpness (offset - d)) / sharpness`; default 0.01.
    pub push_sharpness: f32,
    /// Cost of a transition; default 1.
    pub step_cost: f32,
    /// Mean squared excess of transitions over their cost that is allowed; default 0.05.
    pub margin: f32,
    /// Weight of the latent transition loss; default 1.
    pub transition_weight: f32,
    /// The multiplier's parameter at the start; the multiplier is its softplus. Default 1.
    pub dual_start: f32,
    /// What moves the multiplier; default SGD with learning rate 0.01.
    pub dual_optimiser: DualOptimiser,
    /// What moves the metric and the transition model; default learning rate 1e-3, gradients cut to length 1.
    pub critic_optimiser: AdamSettings,
}

/// How QRL predicts the outcome of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransitionSettings {
    /// As in the authors' script: the metric's network takes a state and an action, and the action is zero for "just this state", so
    /// that its features of `(s, a)` are the prediction.
    ActionInput,
    /// As in QRL's Sec. 3.4: a state encoder `f` before the metric and `T(s, a) = f(s) + residual(f(s), a)`.
    Latent {
        /// Columns of `f`.
        size: usize,
        /// The encoder's network.
        encoder: MlpSettings,
        /// The residual's network, whose last layer starts at its initialiser like the others.
        residual: MlpSettings,
    },
}

/// What moves the multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DualOptimiser {
    /// Plain gradient steps.
    Sgd {
        /// Step size.
        learning_rate: f32,
    },
    /// Adam.
    Adam(AdamSettings),
}

/// `E -phi(d)`, what pushes states and goals apart: `mean softplus(sharpness (offset - d)) / sharpness`.
pub fn push_loss<B: Backend>(
    distance: &Var<B>,
    offset: f32,
    sharpness: f32,
) -> cm_nn::Result<Var<B>> {
    let near = distance.affine(-sharpness, sharpness * offset)?.softplus()?;
    near.mean(Over::All)?.scale(1.0 / sharpness)
}

/// `E max(0, d(s, s') - cost)^2`, by how much transitions are too long.
pub fn transition_excess<B: Backend>(distance: &Var<B>, step_cost: f32) -> cm_nn::Result<Var<B>> {
    distance.affine(1.0, -step_cost)?.relu()?.square()?.mean(Over::All)
}

/// `E (d(T(s, a), s')^2 + d(s', T(s, a))^2) / 2`, how far the predicted outcome is from the real one.
pub fn latent_transition_loss<B: Backend>(there: &Var<B>, back: &Var<B>) -> cm_nn::Result<Var<B>> {
    there.square()?.add(&back.square()?)?.mean(Over::All)?.scale(0.5)
}

/// The Lagrangian `push + multiplier * (excess - margin)`, to be minimised over the metric and maximised over the multiplier.
///
/// Both happen by descent on the one result: the metric sees `push + multiplier * excess` with the multiplier constant, the multiplier
/// `multiplier * (margin - excess)` with the excess constant.
pub fn lagrangian<B: Backend>(
    push: &Var<B>,
    excess: &Var<B>,
    multiplier: &Var<B>,
    margin: f32,
) -> cm_nn::Result<Var<B>> {
    let primal = push.add(&multiplier.stop_gradient().mul(excess)?)?;
    let slack = excess.stop_gradient().affine(-1.0, margin)?;
    primal.add(&multiplier.mul(&slack)?)
}

impl Default for QrlSettings {
    fn default() -> Self {
        Self::pointmaze()
    }
}

impl QrlSettings {
    /// The 2-D experiment as the authors' script runs it.
    pub fn pointmaze() -> Self {
        Self {
            metric: MetricSettings::pointmaze(),
            transition: TransitionSettings::ActionInput,
            push_offset: 500.0,
            push_sharpness: 0.01,
            step_cost: 1.0,
            margin: 0.05,
            transition_weight: 1.0,
            dual_start: 1.0,
            dual_optimiser: DualOptimiser::Sgd { learning_rate: 0.01 },
            critic_optimiser: AdamSettings {
                learning_rate: 1e-3,
                clip: Some(1.0),
                ..Default::default()
            },
        }
    }

    /// The offline maze runs of the QRL paper.
    pub fn original() -> Self {
        let network = |layers| MlpSettings { hidden: vec![1024; layers], ..Default::default() };
        let critic_optimiser = AdamSettings { learning_rate: 5e-4, ..Default::default() };
        Self {
            metric: MetricSettings {
                head: HeadSettings::Iqe { groups: 64 },
                features: 2048,
                network: network(2),
            },
            transition: TransitionSettings::Latent {
                size: 128,
                encoder: network(3),
                residual: network(3),
            },
            push_offset: 15.0,
            push_sharpness: 0.1,
            margin: 0.0625,
            // The multiplier starts at 0.01.
            dual_start: 0.01_f32.exp_m1().ln(),
            dual_optimiser: DualOptimiser::Adam(AdamSettings {
                learning_rate: 0.01,
                ..Default::default()
            }),
            critic_optimiser,
            ..Self::pointmaze()
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.metric.check()?;
        let finite = |x: f32| x >= 0.0 && x.is_finite();
        require(finite(self.push_offset), "push_offset", "not negative", self.push_offset)?;
        positive("push_sharpness", self.push_sharpness)?;
        positive("step_cost", self.step_cost)?;
        positive("margin", self.margin)?;
        let weight = self.transition_weight;
        require(finite(weight), "transition_weight", "not negative", weight)?;
        require(self.dual_start.is_finite(), "dual_start", "finite", self.dual_start)?;
        if let TransitionSettings::Latent { size, .. } = self.transition {
            require(size > 0, "transition.latent.size", "positive", size)?;
        }
        match self.dual_optimiser {
            DualOptimiser::Sgd { learning_rate } => positive("learning_rate", learning_rate)?,
            DualOptimiser::Adam(settings) => settings.check()?,
        }
        Ok(self.critic_optimiser.check()?)
    }
}

/// QRL's learned distance with its transition model and multiplier.
pub struct QrlCritic<B: Backend> {
    settings: QrlSettings,
    sizes: Sizes,
    parameters: Parameters<B>,
    dual_parameters: Parameters<B>,
    metric: Metric<B>,
    transition: Transition<B>,
    dual: Parameter<B>,
    optimiser: Adam<B>,
    dual_optimiser: DualSteps<B>,
}

/// The networks of [`TransitionSettings`].
enum Transition<B: Backend> {
    ActionInput,
    Latent { encoder: Mlp<B>, residual: Mlp<B> },
}

enum DualSteps<B: Backend> {
    Sgd(Sgd<B>),
    Adam(Adam<B>),
}

impl<B: Backend> QrlCritic<B> {
    /// With fresh parameters drawn under `seed`.
    pub fn new(backend: &B, seed: u64, sizes: Sizes, settings: QrlSettings) -> Result<Self> {
        settings.check()?;
        let mut parameters = Parameters::new(backend, seed);
        let mut dual_parameters = Parameters::new(backend, seed);
        let (transition, columns) = match &settings.transition {
            TransitionSettings::ActionInput => {
                (Transition::ActionInput, sizes.state + sizes.action)
            }
            TransitionSettings::Latent { size, encoder, residual } => {
                let encoder = Mlp::new(&mut parameters, "encoder", sizes.state, encoder, *size)?;
                let inputs = size + sizes.action;
                let residual = Mlp::new(&mut parameters, "transition", inputs, residual, *size)?;
                (Transition::Latent { encoder, residual }, *size)
            }
        };
        let metric = Metric::new(&mut parameters, "metric", columns, &settings.metric)?;
        let start = Initialiser::Constant(settings.dual_start);
        let dual = dual_parameters.create("dual", [1, 1], start)?;
        let optimiser = Adam::new(&parameters, settings.critic_optimiser)?;
        let dual_optimiser = match settings.dual_optimiser {
            DualOptimiser::Sgd { learning_rate } => {
                DualSteps::Sgd(Sgd::new(&dual_parameters, learning_rate)?)
            }
            DualOptimiser::Adam(settings) => {
                DualSteps::Adam(Adam::new(&dual_parameters, settings)?)
            }
        };
        Ok(Self {
            settings,
            sizes,
            parameters,
            dual_parameters,
            metric,
            transition,
            dual,
            optimiser,
            dual_optimiser,
        })
    }

    /// One step on the metric, the transition model and the multiplier.
    pub fn step(&self, batch: &Batch<B>) -> Result<Metrics<B>> {
        batch.check(self.sizes)?;
        let settings = &self.settings;
        let backend = self.parameters.backend();
        let order = Var::permutation(backend, batch.goal.rows(), GOAL_ORDER)?;
        let goal = batch.goal.gather_rows(&order)?;
        let mut metrics = Metrics::default();
        let wanted = [&self.parameters, &self.dual_parameters];
        let (_, mut gradients) = gradients(backend, &wanted, || {
            let state = self.state_features(&batch.state)?;
            let next_state = self.state_features(&batch.next_state)?;
            let outcome = self.outcome_features(&batch.state, &batch.action)?;
            let far = self.metric.between(&state, &self.state_features(&goal)?)?;
            let near = self.metric.between(&state, &next_state)?;
            let there = self.metric.between(&outcome, &next_state)?;
            let back = self.metric.between(&next_state, &outcome)?;

            let push = push_loss(&far, settings.push_offset, settings.push_sharpness)?;
            let excess = transition_excess(&near, settings.step_cost)?;
            let multiplier = self.dual.value()?.softplus()?;
            let transition = latent_transition_loss(&there, &back)?;

            metrics.note("push", &push);
            metrics.note("excess", &excess);
            metrics.note("multiplier", &multiplier);
            metrics.note("transition", &transition);
            metrics.note("distance", &far.mean(Over::All)?);
            lagrangian(&push, &excess, &multiplier, settings.margin)?
                .add(&transition.scale(settings.transition_weight)?)
        })?;
        self.optimiser.step(&mut gradients)?;
        match &self.dual_optimiser {
            DualSteps::Sgd(sgd) => sgd.step(&mut gradients)?,
            DualSteps::Adam(adam) => adam.step(&mut gradients)?,
        }
        Ok(metrics)
    }

    /// `d(s, g)`, `[n, 1]`.
    pub fn distance(&self, state: &Var<B>, goal: &Var<B>) -> cm_nn::Result<Var<B>> {
        self.metric.between(&self.state_features(state)?, &self.state_features(goal)?)
    }

    /// `d(T(s, a), g)`, the distance that remains after an action, `[n, 1]`.
    pub fn distance_after(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
    ) -> cm_nn::Result<Var<B>> {
        self.metric.between(&self.outcome_features(state, action)?, &self.state_features(goal)?)
    }

    /// The parameters that Adam moves.
    pub fn parameters(&self) -> &Parameters<B> {
        &self.parameters
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
        let mut parts = vec![
            ("critic/", Part::Parameters(&self.parameters)),
            ("multiplier/", Part::Parameters(&self.dual_parameters)),
            ("critic-adam/", Part::Adam(&self.optimiser)),
        ];
        if let DualSteps::Adam(adam) = &self.dual_optimiser {
            parts.push(("multiplier-adam/", Part::Adam(adam)));
        }
        parts
    }

    fn state_features(&self, state: &Var<B>) -> cm_nn::Result<Var<B>> {
        let latent = match &self.transition {
            Transition::ActionInput => {
                let shape = [state.rows(), self.sizes.action];
                Var::concat_columns(&[state, &Var::full(state.backend(), shape, 0.0)?])?
            }
            Transition::Latent { encoder, .. } => encoder.forward(state)?,
        };
        self.metric.features(&latent)
    }

    fn outcome_features(&self, state: &Var<B>, action: &Var<B>) -> cm_nn::Result<Var<B>> {
        let latent = match &self.transition {
            Transition::ActionInput => Var::concat_columns(&[state, action])?,
            Transition::Latent { encoder, residual } => {
                let latent = encoder.forward(state)?;
                latent.add(&residual.forward(&Var::concat_columns(&[&latent, action])?)?)?
            }
        };
        self.metric.features(&latent)
    }
}
