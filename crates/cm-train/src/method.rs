//! The methods a run can train, by name and with their settings.

use std::fmt;
use std::str::FromStr;

use cm_baselines::{
    Iql, IqlSettings, QLearning, QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_contrastive::{Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings, StateMetricSettings};
use cm_learner::{Dimensions, FeatureSettings, Learner};
use cm_nn::check::Within;
use cm_nn::{AdamSettings, Backend, Head, MlpSettings, QuasimetricSettings};
use cm_policy::{
    ActorSettings, BehaviourCloning, Extraction, Gcbc, GcbcSettings, PolicyKind, PolicySettings,
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

    /// Whether what it learns is a quasimetric on states, whatever the weights: the triangle
    /// inequality holds, so distances can be composed.
    pub const fn is_quasimetric(self) -> bool {
        matches!(self, Self::Cmd1 | Self::Cmd2 | Self::Qrl)
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
            setting: "method".to_owned(),
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

    /// AntMaze as the authors' code runs it (or as each baseline's own), with hidden layers of
    /// these widths everywhere.
    pub fn ant_maze(method: Method, hidden: &[usize]) -> Self {
        let mut settings = match method {
            Method::Cmd1 => Self::Cmd1(Cmd1Settings::authors_code()),
            Method::Cmd2 => Self::Cmd2(Cmd2Settings::authors_code()),
            Method::Crl => Self::Crl(CrlSettings::authors_code()),
            Method::Qrl => Self::Qrl(QrlSettings::original()),
            Method::QLearning => Self::QLearning(QLearningSettings::original()),
            Method::Gcbc => Self::Gcbc(GcbcSettings::authors_code()),
            Method::Iql => Self::Iql(IqlSettings::antmaze()),
        };
        settings.set_hidden(hidden);
        settings
    }

    /// AntMaze in minutes on a CPU: hidden layers of 2 x 256, 128 features in a quasimetric,
    /// learning rates of 5e-4, and policies that are held more closely to the data, which so short
    /// a training needs: the distance divided by its mean size, and twice the squared error of the
    /// policy's mode.
    pub fn ant_maze_small(method: Method) -> Self {
        let mut settings = Self::ant_maze(method, &[256, 256]);
        settings.set_learning_rate(5e-4);
        if let Some(quasimetric) = settings.quasimetric() {
            quasimetric.features = 128;
            if let Head::Iqe { groups, .. } = &mut quasimetric.head {
                *groups = 16;
            }
        }
        if let Some(actor) = settings.actor() {
            actor.extraction = Extraction::ScaledDistance { alpha: 2.0 };
            actor.behaviour_cloning = BehaviourCloning::Mse;
            (actor.sampled, actor.mixup) = (false, None);
        }
        settings
    }

    /// A start for data of one's own, whose states and actions are scaled
    /// ([`Scaling`](crate::Scaling)): the networks of the 2-D experiment, features for numbers
    /// around zero, actions with their size, a tanh-Gaussian policy, gradients clipped to length 1;
    /// and a metric on states alone beside CMD's with actions.
    pub fn own_data(method: Method) -> Self {
        let mut settings = match method {
            // Not the script's reward, which passes nothing back in time.
            Method::QLearning => Self::QLearning(QLearningSettings::plane()),
            other => Self::plane(other),
        };
        settings.set_hidden(&[64; 2]);
        settings.policy().kind = PolicyKind::TanhGaussian;
        let features = FeatureSettings::soft(20, 3.0, 0.25).with_sized_actions();
        settings.features().into_iter().for_each(|seen| *seen = features);
        settings.optimisers().into_iter().for_each(|adam| adam.clip = Some(1.0));
        match &mut settings {
            Self::Cmd1(cmd1) => {
                (cmd1.twin, cmd1.states) = (false, Some(StateMetricSettings::own_data()));
                cmd1.quasimetric.features = 128;
                cmd1.distance_divisor = 1.0;
            }
            Self::Cmd2(cmd2) => {
                cmd2.states = Some(StateMetricSettings::own_data());
                cmd2.quasimetric.features = 128;
                cmd2.distance_divisor = 1.0;
            }
            _ => {}
        }
        settings
    }

    /// Hidden layers of these widths in every network.
    pub fn set_hidden(&mut self, hidden: &[usize]) {
        self.networks().into_iter().for_each(|network| network.hidden = hidden.to_vec());
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

    fn networks(&mut self) -> Vec<&mut MlpSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.quasimetric.network, &mut s.actor.policy.network],
            Self::Cmd2(s) => {
                vec![&mut s.critic.network, &mut s.quasimetric.network, &mut s.actor.policy.network]
            }
            Self::Crl(s) => vec![&mut s.critic.network, &mut s.actor.policy.network],
            Self::Qrl(s) => {
                let mut networks = vec![&mut s.quasimetric.network, &mut s.actor.policy.network];
                if let TransitionSettings::Latent { encoder, residual, .. } = &mut s.transition {
                    networks.extend([encoder, residual]);
                }
                networks
            }
            Self::QLearning(s) => vec![&mut s.network, &mut s.actor.policy.network],
            Self::Gcbc(s) => vec![&mut s.policy.network],
            Self::Iql(s) => vec![&mut s.network, &mut s.policy.network],
        }
    }

    fn features(&mut self) -> Vec<&mut FeatureSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::Cmd2(s) => {
                vec![&mut s.features, &mut s.critic.features, &mut s.actor.policy.features]
            }
            Self::Crl(s) => vec![&mut s.critic.features, &mut s.actor.policy.features],
            Self::Qrl(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::QLearning(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::Gcbc(s) => vec![&mut s.policy.features],
            Self::Iql(s) => vec![&mut s.features, &mut s.policy.features],
        }
    }

    /// How the policy is extracted from a distance; none if it is not.
    fn actor(&mut self) -> Option<&mut ActorSettings> {
        match self {
            Self::Cmd1(s) => Some(&mut s.actor),
            Self::Cmd2(s) => Some(&mut s.actor),
            Self::Crl(s) => Some(&mut s.actor),
            Self::Qrl(s) => Some(&mut s.actor),
            Self::QLearning(s) => Some(&mut s.actor),
            Self::Gcbc(_) | Self::Iql(_) => None,
        }
    }

    fn policy(&mut self) -> &mut PolicySettings {
        match self {
            Self::Cmd1(s) => &mut s.actor.policy,
            Self::Cmd2(s) => &mut s.actor.policy,
            Self::Crl(s) => &mut s.actor.policy,
            Self::Qrl(s) => &mut s.actor.policy,
            Self::QLearning(s) => &mut s.actor.policy,
            Self::Gcbc(s) => &mut s.policy,
            Self::Iql(s) => &mut s.policy,
        }
    }

    fn quasimetric(&mut self) -> Option<&mut QuasimetricSettings> {
        match self {
            Self::Cmd1(s) => Some(&mut s.quasimetric),
            Self::Cmd2(s) => Some(&mut s.quasimetric),
            Self::Qrl(s) => Some(&mut s.quasimetric),
            _ => None,
        }
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

    /// Refuses settings outside their ranges; errors name the whole key,
    /// `method.cmd1.adam.epsilon`.
    pub fn check(&self) -> Result<()> {
        let checked = match self {
            Self::Cmd1(settings) => settings.check(),
            Self::Cmd2(settings) => settings.check(),
            Self::Crl(settings) => settings.check(),
            Self::Qrl(settings) => settings.check(),
            Self::QLearning(settings) => settings.check(),
            Self::Gcbc(settings) => settings.check(),
            Self::Iql(settings) => settings.check(),
        };
        Ok(checked.within(self.method().key()).within("method")?)
    }

    /// A learner with fresh weights; refuses settings outside their ranges.
    pub fn learner<B: Backend>(
        &self,
        backend: &B,
        dimensions: &Dimensions,
    ) -> Result<Box<dyn Learner<B>>> {
        self.check()?;
        Ok(match self {
            Self::Cmd1(settings) => Box::new(Cmd1::new(backend, settings, dimensions)?),
            Self::Cmd2(settings) => Box::new(Cmd2::new(backend, settings, dimensions)?),
            Self::Crl(settings) => Box::new(Crl::new(backend, settings, dimensions)?),
            Self::Qrl(settings) => Box::new(Qrl::new(backend, settings, dimensions)?),
            Self::QLearning(settings) => Box::new(QLearning::new(backend, settings, dimensions)?),
            Self::Gcbc(settings) => Box::new(Gcbc::new(backend, settings, dimensions)?),
            Self::Iql(settings) => Box::new(Iql::new(backend, settings, dimensions)?),
        })
    }
}
