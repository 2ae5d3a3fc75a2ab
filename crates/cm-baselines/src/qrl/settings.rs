//! Settings of QRL.

use cm_learner::{DualOptimiser, FeatureSettings};
use cm_nn::check::{Within, finite, not_negative, positive, require};
use cm_nn::{AdamSettings, Decay, Head, MlpSettings, QuasimetricSettings, Reduction, Result};
use cm_policy::{ActorSettings, BehaviourCloning, Extraction, PolicyGoals, PolicySettings};
use serde::{Deserialize, Serialize};

/// Settings of [`Qrl`](crate::Qrl). The defaults are [`QrlSettings::plane`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QrlSettings {
    /// What the metric sees of states and actions.
    pub features: FeatureSettings,
    /// The quasimetric and its networks.
    pub quasimetric: QuasimetricSettings,
    /// How the outcome of an action is predicted; default by the metric's own network.
    pub transition: TransitionSettings,
    /// Distances beyond this are hardly pushed any further; default 500.
    pub push_offset: f32,
    /// How suddenly the push stops there: `phi(d) = -softplus(sharpness (offset - d)) / sharpness`;
    /// default 0.01.
    pub push_sharpness: f32,
    /// Cost of a transition; default 1.
    pub step_cost: f32,
    /// Mean squared excess of transitions over their cost that is allowed; default 0.05.
    pub margin: f32,
    /// Weight of the latent transition loss; default 1.
    pub transition_weight: f32,
    /// How the distances between a predicted and a real outcome are counted; default squared.
    pub transition_error: TransitionError,
    /// Which goals states are pushed apart from; default other rows'.
    pub push_goals: PushGoals,
    /// How the multiplier is made positive; default softplus.
    pub multiplier: Multiplier,
    /// The parameter behind the multiplier starts here; default 1.
    pub dual_start: f32,
    /// What moves that parameter; default SGD with learning rate 0.01.
    pub dual_optimiser: DualOptimiser,
    /// What moves the metric and the transition model; default learning rate 1e-3, gradients cut to
    /// length 1.
    pub adam: AdamSettings,
    /// The policy.
    pub actor: ActorSettings,
}

/// How QRL predicts the outcome of an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TransitionSettings {
    /// As in the authors' script: the metric's network takes a state and an action, the action
    /// being zero for "just this state", and what it makes of `(s, a)` is the prediction.
    ActionInput,
    /// As in Sec. 3.4 of the QRL paper: a state encoder `f` before the metric, and
    /// `T(s, a) = f(s) + residual(f(s), a)`.
    Latent {
        /// Columns of `f`.
        size: usize,
        /// The encoder's hidden layers.
        encoder: MlpSettings,
        /// The residual's hidden layers.
        residual: MlpSettings,
    },
    /// As in OGBench: `T(s, a) = f(s) + residual(f(s), a)` with the features `f` that the metric
    /// itself compares.
    Features {
        /// The residual's hidden layers.
        residual: MlpSettings,
    },
}

/// How the distances between a predicted and a real outcome are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransitionError {
    /// Their squares.
    #[default]
    Squared,
    /// As they are.
    Plain,
}

/// The goals that states are pushed apart from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushGoals {
    /// Those of the batch in random order.
    #[default]
    Permuted,
    /// The rows' own: for batches whose goals are random already.
    Own,
}

/// How a multiplier is made positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multiplier {
    /// `ln(1 + exp(x))`.
    #[default]
    Softplus,
    /// `exp(x)`.
    Exp,
}

impl Default for QrlSettings {
    fn default() -> Self {
        Self::plane()
    }
}

impl QrlSettings {
    /// The 2-D experiment as the authors' script runs it.
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        let network = actor.policy.network.clone();
        Self {
            features: FeatureSettings::PLANE,
            quasimetric: QuasimetricSettings { separate: true, network, ..Default::default() },
            transition: TransitionSettings::ActionInput,
            push_offset: 500.0,
            push_sharpness: 0.01,
            step_cost: 1.0,
            margin: 0.05,
            transition_weight: 1.0,
            transition_error: TransitionError::Squared,
            push_goals: PushGoals::Permuted,
            multiplier: Multiplier::Softplus,
            dual_start: 1.0,
            dual_optimiser: DualOptimiser::Sgd { learning_rate: 0.01 },
            // The gradient that decides how much all are clipped, see `ActorSettings::plane`.
            adam: AdamSettings { learning_rate: 1e-3, clip: Some(1.0), ..Default::default() },
            actor,
        }
    }

    /// The offline maze runs of the QRL paper's own code: IQE over 2048 features in 64 groups,
    /// 1024-wide networks, margin 0.25 squared, a multiplier that starts at 0.01, behaviour cloning
    /// by log-density with weight 0.05 to 1. The learning rates of metric and policy fall to 0 along
    /// a cosine, over the 200,000 steps of those runs. Distances are pushed up to 500, as in the
    /// script that its later copies have; its first versions left the 15 of short episodes.
    pub fn original() -> Self {
        let network = |layers| MlpSettings { hidden: vec![1024; layers], ..Default::default() };
        let adam = |learning_rate| AdamSettings { learning_rate, ..Default::default() };
        let decay = Decay::Cosine { steps: 200_000, to: 0.0 };
        let falling = |learning_rate| AdamSettings { decay, ..adam(learning_rate) };
        let head = Head::Iqe { groups: 64, reduction: Reduction::MAX_MEAN };
        Self {
            features: FeatureSettings::Raw,
            quasimetric: QuasimetricSettings {
                head,
                features: 2048,
                separate: false,
                network: network(2),
            },
            transition: TransitionSettings::Latent {
                size: 128,
                encoder: network(3),
                residual: network(3),
            },
            push_offset: 500.0,
            push_sharpness: 0.01,
            step_cost: 1.0,
            margin: 0.0625,
            transition_weight: 1.0,
            transition_error: TransitionError::Squared,
            push_goals: PushGoals::Permuted,
            multiplier: Multiplier::Softplus,
            dual_start: 0.01_f32.exp_m1().ln(),
            dual_optimiser: DualOptimiser::Adam(adam(0.01)),
            adam: falling(5e-4),
            actor: ActorSettings {
                policy: PolicySettings { network: network(4), ..Default::default() },
                adam: falling(3e-5),
                extraction: Extraction::DistanceMinimisation { bc_coef: 0.05 / 1.05 },
                behaviour_cloning: BehaviourCloning::Mle,
                mixup: None,
                goals: PolicyGoals::Permuted,
                sampled: true,
            },
        }
    }

    /// OGBench's: IQE over 512 features in 64 groups, whose networks and transitions are 3 x 512
    /// GELU with layer norm; transitions predicted in the metric's own space and counted by their
    /// distance; a multiplier `exp(x)` that moves with the rest; goals that the batch has random.
    pub fn ogbench() -> Self {
        let actor = ActorSettings::ogbench();
        let (network, head) =
            (MlpSettings::ogbench(), Head::Iqe { groups: 64, reduction: Reduction::MAX_MEAN });
        Self {
            features: FeatureSettings::Raw,
            transition: TransitionSettings::Features { residual: network.clone() },
            quasimetric: QuasimetricSettings { head, features: 512, separate: false, network },
            push_offset: 500.0,
            push_sharpness: 0.01,
            step_cost: 1.0,
            margin: 0.05,
            transition_weight: 1.0,
            transition_error: TransitionError::Plain,
            push_goals: PushGoals::Own,
            multiplier: Multiplier::Exp,
            dual_start: 0.0,
            dual_optimiser: DualOptimiser::Together,
            adam: actor.adam,
            actor,
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.features.check().within("features")?;
        self.quasimetric.check().within("quasimetric")?;
        match &self.transition {
            TransitionSettings::ActionInput => {}
            TransitionSettings::Latent { size, encoder, residual } => {
                require(*size > 0, "transition.latent.size", "positive", size)?;
                encoder.check().within("transition.latent.encoder")?;
                residual.check().within("transition.latent.residual")?;
            }
            TransitionSettings::Features { residual } => {
                residual.check().within("transition.features.residual")?;
            }
        }
        not_negative("push_offset", self.push_offset)?;
        positive("push_sharpness", self.push_sharpness)?;
        positive("step_cost", self.step_cost)?;
        not_negative("margin", self.margin)?;
        not_negative("transition_weight", self.transition_weight)?;
        finite("dual_start", self.dual_start)?;
        self.dual_optimiser.check().within("dual_optimiser")?;
        self.adam.check().within("adam")?;
        self.actor.check().within("actor")
    }
}
