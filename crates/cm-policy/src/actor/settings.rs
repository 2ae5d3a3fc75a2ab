//! Settings of policy extraction.

use cm_learner::FeatureSettings;
use cm_nn::check::{Within, not_negative, positive, require, share};
use cm_nn::{Activation, AdamSettings, Initialiser, MlpSettings};
use serde::{Deserialize, Serialize};

use crate::{PolicyKind, PolicySettings, Result};

/// How a policy is extracted from a distance. The defaults are [`ActorSettings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActorSettings {
    /// The policy.
    pub policy: PolicySettings,
    /// What moves it.
    pub adam: AdamSettings,
    /// What it minimises.
    pub extraction: Extraction,
    /// How it is held to the data's actions.
    pub behaviour_cloning: BehaviourCloning,
    /// Whether behaviour cloning mixes similar rows, and how.
    #[serde(default, with = "cm_nn::or_none")]
    pub mixup: Option<Mixup>,
    /// Which goals the policy is trained to reach.
    pub goals: PolicyGoals,
    /// Whether the losses see actions drawn from the policy (the default) or its mode.
    pub sampled: bool,
}

/// What a policy minimises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Extraction {
    /// The distance from its own action, held to the data's: `(1 - b) d + b BC`.
    DistanceMinimisation {
        /// The weight `b` of behaviour cloning; in `[0, 1]`.
        bc_coef: f32,
    },
    /// The distance from its own action divided by its mean size over the batch, so that the weight
    /// of the data's actions means the same for any scale of distances:
    /// `d / stop(mean |d|) + alpha BC`.
    ScaledDistance {
        /// The weight of behaviour cloning; not negative.
        alpha: f32,
    },
    /// Advantage-weighted regression: behaviour cloning weighted by
    /// `min(100, exp(advantage / temperature))`.
    AdvantageWeighted {
        /// Positive; how little the advantage matters.
        temperature: f32,
    },
    /// Advantage-weighted regression by a method that learns the value of a state beside that of
    /// an action: behaviour cloning weighted by `min(100, exp(sharpness advantage))`.
    ValueAdvantage {
        /// How much the advantage matters; not negative.
        sharpness: f32,
    },
}

impl Extraction {
    /// The same with another weight of the data's actions against the distance or value, which
    /// itself has weight 1; in a weighted regression, with another sharpness.
    ///
    /// ```
    /// use cm_policy::Extraction;
    ///
    /// let half = Extraction::DistanceMinimisation { bc_coef: 0.2 }.with_weight(1.0);
    /// assert_eq!(half, Extraction::DistanceMinimisation { bc_coef: 0.5 });
    /// ```
    pub fn with_weight(self, alpha: f32) -> Self {
        match self {
            // A constant factor of the whole loss is nothing to Adam.
            Self::DistanceMinimisation { .. } => {
                Self::DistanceMinimisation { bc_coef: alpha / (1.0 + alpha) }
            }
            Self::ScaledDistance { .. } => Self::ScaledDistance { alpha },
            Self::AdvantageWeighted { .. } => Self::AdvantageWeighted { temperature: 1.0 / alpha },
            Self::ValueAdvantage { .. } => Self::ValueAdvantage { sharpness: alpha },
        }
    }
}

/// How far the policy is from an action in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BehaviourCloning {
    /// Mean squared difference of the coordinates of the policy's action and the stored one.
    Mse,
    /// Squared length of that difference.
    SquaredLength,
    /// Minus the log-density of the stored action.
    Mle,
}

/// C-Mixup: a row and its partner, drawn with probability proportional to
/// `exp(-|z_i - z_j|^2 / (2 bandwidth^2))` over `z = (state, goal)`, are mixed with a weight from
/// Beta(2, 2): inputs and actions alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mixup {
    /// Positive; how far apart rows may be to be mixed.
    pub bandwidth: f32,
}

impl Default for Mixup {
    fn default() -> Self {
        Self { bandwidth: 2.75 }
    }
}

/// Which goals the distance term asks the policy to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PolicyGoals {
    /// The row's own: the policy's where those are drawn apart, else the future goal.
    Own,
    /// With this probability the goal of the row above, else its own.
    Rolled {
        /// In `[0, 1]`.
        probability: f32,
    },
    /// The goals of the batch in random order.
    Permuted,
}

impl Default for ActorSettings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl ActorSettings {
    /// As the paper writes it (Eq. 23, `eq:policy_loss`): random goals, distance and log-density
    /// with equal weights, no mixing, 4 x 512. Adam 3e-4: it has contrastive RL's settings where it
    /// says nothing else.
    pub fn paper_text() -> Self {
        Self {
            policy: PolicySettings::default(),
            adam: AdamSettings { learning_rate: 3e-4, ..Default::default() },
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.5 },
            behaviour_cloning: BehaviourCloning::Mle,
            mixup: None,
            goals: PolicyGoals::Permuted,
            sampled: true,
        }
    }

    /// As the authors' code runs it on offline AntMaze: own goals, weight 0.2 of the mean squared
    /// error, C-Mixup, 4 x 1024, Adam 5e-5.
    pub fn authors_code() -> Self {
        let network = MlpSettings { hidden: vec![1024; 4], ..Default::default() };
        Self {
            policy: PolicySettings { network, ..Default::default() },
            adam: AdamSettings::default(),
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.2 },
            behaviour_cloning: BehaviourCloning::Mse,
            mixup: Some(Mixup::default()),
            goals: PolicyGoals::Own,
            ..Self::paper_text()
        }
    }

    /// As contrastive RL's authors run it on offline AntMaze: own goals, weight 0.05 of the
    /// log-density, 2 x 1024, Adam 3e-4.
    ///
    /// ```
    /// use cm_policy::{ActorSettings, PolicyGoals};
    ///
    /// let settings = ActorSettings::contrastive_rl();
    /// settings.check()?;
    /// assert_eq!(settings.goals, PolicyGoals::Own);
    /// # Ok::<(), cm_policy::Error>(())
    /// ```
    pub fn contrastive_rl() -> Self {
        let network = MlpSettings { hidden: vec![1024; 2], ..Default::default() };
        Self {
            policy: PolicySettings { network, ..Default::default() },
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.05 },
            goals: PolicyGoals::Own,
            ..Self::paper_text()
        }
    }

    /// The 2-D experiment: a direction, 3 x 64 swish over soft features, permuted goals, weight
    /// 0.01, Adam 1e-3.
    ///
    /// The authors' script clips the gradients of six methods together to length 1. Together they
    /// are about 100 long, mostly QRL's, so that each is divided by about 100, whatever its own
    /// length; Adam notices in its epsilon alone. Trained for itself, a method therefore is not
    /// clipped, and epsilon is 1e-6 instead of 1e-8.
    pub fn plane() -> Self {
        let network = MlpSettings {
            hidden: vec![64; 3],
            activation: Activation::Silu,
            initialiser: Initialiser::CUT_NORMAL,
            ..Default::default()
        };
        let (kind, features) = (PolicyKind::UnitVector, FeatureSettings::PLANE);
        Self {
            policy: PolicySettings { kind, network, features, output: None },
            adam: AdamSettings { learning_rate: 1e-3, epsilon: 1e-6, ..Default::default() },
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.01 },
            behaviour_cloning: BehaviourCloning::SquaredLength,
            mixup: None,
            goals: PolicyGoals::Permuted,
            sampled: false,
        }
    }

    /// OGBench's DDPG with behaviour cloning: [`PolicySettings::ogbench`], scaled distance, Adam
    /// 3e-4.
    pub fn ogbench() -> Self {
        Self {
            policy: PolicySettings::ogbench(),
            adam: AdamSettings { learning_rate: 3e-4, ..Default::default() },
            extraction: Extraction::ScaledDistance { alpha: 0.1 },
            goals: PolicyGoals::Own,
            sampled: false,
            ..Self::paper_text()
        }
    }

    /// Refuses settings outside their ranges, and an extraction that needs values of states, which
    /// most methods do not have.
    pub fn check(&self) -> Result<()> {
        let without = !matches!(self.extraction, Extraction::ValueAdvantage { .. });
        let expected = "one that does not need values of states, which this method has not";
        require(without, "extraction", expected, "value-advantage")?;
        self.check_with_values()
    }

    /// Refuses settings outside their ranges, for a method that has values of states.
    pub fn check_with_values(&self) -> Result<()> {
        self.policy.check().within("policy")?;
        self.adam.check().within("adam")?;
        match self.extraction {
            Extraction::DistanceMinimisation { bc_coef } => {
                share("bc_coef", bc_coef).within("distance-minimisation")
            }
            Extraction::ScaledDistance { alpha } => {
                not_negative("alpha", alpha).within("scaled-distance")
            }
            Extraction::AdvantageWeighted { temperature } => {
                positive("temperature", temperature).within("advantage-weighted")
            }
            Extraction::ValueAdvantage { sharpness } => {
                not_negative("sharpness", sharpness).within("value-advantage")
            }
        }
        .within("extraction")?;
        if let PolicyGoals::Rolled { probability } = self.goals {
            share("probability", probability).within("goals.rolled")?;
        }
        if let Some(Mixup { bandwidth }) = self.mixup {
            positive("bandwidth", bandwidth).within("mixup")?;
        }
        let dense = self.policy.kind != PolicyKind::UnitVector
            || self.behaviour_cloning != BehaviourCloning::Mle;
        let expected = "`mse` or `squared-length` for a unit-vector policy, which has no density";
        require(dense, "behaviour_cloning", expected, "mle")
    }
}
