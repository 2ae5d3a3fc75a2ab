//! The methods a run can train, by name and with their settings.

use std::fmt;
use std::str::FromStr;

use cm_baselines::{
    Iql, IqlSettings, QLearning, QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_contrastive::{Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings};
use cm_nn::{AdamSettings, Backend, HeadSettings, MlpSettings};
use cm_policy::{
    ActorSettings, BehaviourCloning, Dimensions, Extraction, FeatureSettings, Gcbc, GcbcSettings,
    Learner, PolicyKind, PolicySettings,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A method's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Contrastive metric distillation in one step.
    Cmd1,
    /// Contrastive metric distillation in two steps.
    Cmd2,
    /// Contrastive RL.
    Crl,
    /// Quasimetric RL.
    Qrl,
    /// Goal-conditioned Q-learning.
    QLearning,
    /// Goal-conditioned behaviour cloning.
    Gcbc,
    /// Implicit Q-learning.
    Iql,
}

impl Method {
    /// Every method, the paper's own first.
    pub const ALL: [Self; 7] =
        [Self::Cmd1, Self::Cmd2, Self::Crl, Self::Qrl, Self::QLearning, Self::Gcbc, Self::Iql];

    /// As it is written on a command line and in settings.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Cmd1 => "cmd1",
            Self::Cmd2 => "cmd2",
            Self::Crl => "crl",
            Self::Qrl => "qrl",
            Self::QLearning => "q-learning",
            Self::Gcbc => "gcbc",
            Self::Iql => "iql",
        }
    }

    /// As it is written in tables and figures.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Cmd1 => "CMD-1",
            Self::Cmd2 => "CMD-2",
            Self::Crl => "CRL",
            Self::Qrl => "QRL",
            Self::QLearning => "Q-learning",
            Self::Gcbc => "GCBC",
            Self::Iql => "IQL",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.key())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.key() == name).ok_or(Error::Setting {
            setting: "method",
            expected: "cmd1, cmd2, crl, qrl, q-learning, gcbc or iql",
            found: format!("`{name}`"),
        })
    }
}

/// A method with its settings: in TOML a table of the method's name, `[method.cmd1]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodSettings {
    /// [`Cmd1`].
    Cmd1(Cmd1Settings),
    /// [`Cmd2`].
    Cmd2(Cmd2Settings),
    /// [`Crl`].
    Crl(CrlSettings),
    /// [`Qrl`].
    Qrl(QrlSettings),
    /// [`QLearning`].
    QLearning(QLearningSettings),
    /// [`Gcbc`].
    Gcbc(GcbcSettings),
    /// [`Iql`].
    Iql(IqlSettings),
}

impl MethodSettings {
    /// The settings of the paper's 2-D experiment, as the authors' script has them.
    pub fn plane(method: Method) -> Self {
        match method {
            Method::Cmd1 => Self::Cmd1(Cmd1Settings::plane()),
            Method::Cmd2 => Self::Cmd2(Cmd2Settings::plane()),
            Method::Crl => Self::Crl(CrlSettings::plane()),
            Method::Qrl => Self::Qrl(QrlSettings::plane()),
            Method::QLearning => Self::QLearning(QLearningSettings::plane_authors_code()),
            Method::Gcbc => Self::Gcbc(GcbcSettings::plane()),
            Method::Iql => Self::Iql(IqlSettings::plane()),
        }
    }

    /// AntMaze as the authors' code runs it (or as each baseline's own), with hidden layers of these widths everywhere.
    pub fn ant_maze(method: Method, hidden: &[usize]) -> Self {
        let widths = |network: &mut MlpSettings| network.hidden = hidden.to_vec();
        let mut settings = match method {
            Method::Cmd1 => Self::Cmd1(Cmd1Settings::authors_code()),
            Method::Cmd2 => Self::Cmd2(Cmd2Settings::authors_code()),
            Method::Crl => Self::Crl(CrlSettings::authors_code()),
            Method::Qrl => Self::Qrl(QrlSettings::original()),
            Method::QLearning => Self::QLearning(QLearningSettings::original()),
            Method::Gcbc => Self::Gcbc(GcbcSettings::authors_code()),
            Method::Iql => Self::Iql(IqlSettings::original()),
        };
        match &mut settings {
            Self::Cmd1(settings) => {
                widths(&mut settings.quasimetric.network);
                widths(&mut settings.actor.policy.network);
            }
            Self::Cmd2(settings) => {
                widths(&mut settings.critic.network);
                widths(&mut settings.quasimetric.network);
                widths(&mut settings.actor.policy.network);
            }
            Self::Crl(settings) => {
                widths(&mut settings.critic.network);
                widths(&mut settings.actor.policy.network);
            }
            Self::Qrl(settings) => {
                widths(&mut settings.quasimetric.network);
                if let TransitionSettings::Latent { encoder, residual, .. } =
                    &mut settings.transition
                {
                    widths(encoder);
                    widths(residual);
                }
                widths(&mut settings.actor.policy.network);
            }
            Self::QLearning(settings) => {
                widths(&mut settings.network);
                widths(&mut settings.actor.policy.network);
            }
            Self::Gcbc(settings) => widths(&mut settings.policy.network),
            Self::Iql(settings) => {
                widths(&mut settings.network);
                widths(&mut settings.policy.network);
            }
        }
        settings
    }

    /// AntMaze in minutes on a CPU: hidden layers of 2 x 256, 128 features in a quasimetric, learning rates of 5e-4, and policies that are held more closely to the
    /// data, which so short a training needs: the distance divided by its mean size, and twice the squared error of the policy's mode.
    pub fn ant_maze_small(method: Method) -> Self {
        let mut settings = Self::ant_maze(method, &[256, 256]);
        settings.set_learning_rate(5e-4);
        let hold = |actor: &mut ActorSettings| {
            actor.extraction = Extraction::ScaledDistance { alpha: 2.0 };
            actor.behaviour_cloning = BehaviourCloning::Mse;
            (actor.sampled, actor.mixup) = (false, None);
        };
        match &mut settings {
            Self::Cmd1(settings) => {
                settings.quasimetric.features = 128;
                hold(&mut settings.actor);
            }
            Self::Cmd2(settings) => {
                settings.quasimetric.features = 128;
                hold(&mut settings.actor);
            }
            Self::Qrl(settings) => {
                settings.quasimetric.features = 128;
                if let HeadSettings::Iqe { groups, .. } = &mut settings.quasimetric.head {
                    *groups = 16;
                }
                hold(&mut settings.actor);
            }
            Self::Crl(settings) => hold(&mut settings.actor),
            Self::QLearning(settings) => hold(&mut settings.actor),
            Self::Gcbc(_) | Self::Iql(_) => {}
        }
        settings
    }

    /// Every optimiser's learning rate.
    pub fn set_learning_rate(&mut self, rate: f32) {
        self.optimisers().into_iter().for_each(|adam| adam.learning_rate = rate);
    }

    fn optimisers(&mut self) -> Vec<&mut AdamSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Cmd2(s) => vec![&mut s.critic_adam, &mut s.quasimetric_adam, &mut s.actor.adam],
            Self::Crl(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Qrl(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::QLearning(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Gcbc(s) => vec![&mut s.adam],
            Self::Iql(s) => vec![&mut s.value_adam, &mut s.critic_adam, &mut s.policy_adam],
        }
    }

    /// A start for data of one's own, whose states and actions are scaled ([`Scaling`](crate::Scaling)): the networks of the 2-D experiment twice as wide,
    /// features for numbers around zero, a tanh-Gaussian policy, gradients clipped to length 1.
    pub fn own_data(method: Method) -> Self {
        const FEATURES: FeatureSettings =
            FeatureSettings::Soft { centres: 20, limit: 3.0, width: 0.25 };
        let widen = |network: &mut MlpSettings| network.hidden = vec![128; 3];
        let policy = |policy: &mut PolicySettings| {
            policy.kind = PolicyKind::TanhGaussian;
            policy.features = FEATURES;
            policy.network.hidden = vec![128; 3];
        };
        let mut settings = Self::plane(method);
        match &mut settings {
            Self::Cmd1(settings) => {
                settings.features = FEATURES;
                widen(&mut settings.quasimetric.network);
                policy(&mut settings.actor.policy);
            }
            Self::Cmd2(settings) => {
                settings.features = FEATURES;
                settings.critic.features = FEATURES;
                widen(&mut settings.critic.network);
                widen(&mut settings.quasimetric.network);
                policy(&mut settings.actor.policy);
            }
            Self::Crl(settings) => {
                settings.critic.features = FEATURES;
                widen(&mut settings.critic.network);
                policy(&mut settings.actor.policy);
            }
            Self::Qrl(settings) => {
                settings.features = FEATURES;
                widen(&mut settings.quasimetric.network);
                policy(&mut settings.actor.policy);
            }
            Self::QLearning(settings) => {
                *settings = QLearningSettings::plane();
                settings.features = FEATURES;
                widen(&mut settings.network);
                policy(&mut settings.actor.policy);
            }
            Self::Gcbc(settings) => policy(&mut settings.policy),
            Self::Iql(settings) => {
                settings.features = FEATURES;
                widen(&mut settings.network);
                policy(&mut settings.policy);
            }
        }
        settings.optimisers().into_iter().for_each(|adam| adam.clip = Some(1.0));
        settings
    }

    /// Which method it is.
    pub fn method(&self) -> Method {
        match self {
            Self::Cmd1(_) => Method::Cmd1,
            Self::Cmd2(_) => Method::Cmd2,
            Self::Crl(_) => Method::Crl,
            Self::Qrl(_) => Method::Qrl,
            Self::QLearning(_) => Method::QLearning,
            Self::Gcbc(_) => Method::Gcbc,
            Self::Iql(_) => Method::Iql,
        }
    }

    /// A learner with fresh weights; refuses settings outside their ranges.
    pub fn learner<B: Backend + 'static>(
        &self,
        backend: &B,
        seed: u64,
        dimensions: &Dimensions,
    ) -> Result<Box<dyn Learner<B>>> {
        Ok(match self {
            Self::Cmd1(settings) => Box::new(Cmd1::new(backend, seed, settings, dimensions)?),
            Self::Cmd2(settings) => Box::new(Cmd2::new(backend, seed, settings, dimensions)?),
            Self::Crl(settings) => Box::new(Crl::new(backend, seed, settings, dimensions)?),
            Self::Qrl(settings) => Box::new(Qrl::new(backend, seed, settings, dimensions)?),
            Self::QLearning(settings) => {
                Box::new(QLearning::new(backend, seed, settings, dimensions)?)
            }
            Self::Gcbc(settings) => Box::new(Gcbc::new(backend, seed, settings, dimensions)?),
            Self::Iql(settings) => Box::new(Iql::new(backend, seed, settings, dimensions)?),
        })
    }
}
