//! The methods a run can train, by name and with their settings.

mod ogbench;
mod presets;
mod settings;

use std::fmt;
use std::str::FromStr;

use cm_replay::{Goals, MixedGoals};

pub use self::settings::MethodSettings;
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
    /// Temporal metric distillation.
    Tmd,
    /// OGBench's goal-conditioned implicit V-learning.
    Gcivl,
    /// OGBench's goal-conditioned implicit Q-learning.
    Gciql,
    /// Hierarchical implicit Q-learning.
    Hiql,
}

impl Method {
    /// Every method, the paper's own first.
    pub const ALL: [Self; 11] = [
        Self::Cmd1,
        Self::Cmd2,
        Self::Crl,
        Self::Qrl,
        Self::QLearning,
        Self::Gcbc,
        Self::Iql,
        Self::Tmd,
        Self::Gcivl,
        Self::Gciql,
        Self::Hiql,
    ];

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
            Self::Tmd => "tmd",
            Self::Gcivl => "gcivl",
            Self::Gciql => "gciql",
            Self::Hiql => "hiql",
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
            Self::Tmd => "TMD",
            Self::Gcivl => "GCIVL",
            Self::Gciql => "GCIQL",
            Self::Hiql => "HIQL",
        }
    }

    /// Whether what it learns is a quasimetric on states, whatever the weights: the triangle
    /// inequality holds, so distances can be composed.
    pub const fn is_quasimetric(self) -> bool {
        matches!(self, Self::Cmd1 | Self::Cmd2 | Self::Qrl | Self::Tmd)
    }

    /// The same goals with all that the method needs beside: subgoals so many steps ahead, if it
    /// has policies of two levels.
    pub(crate) fn goals(self, goals: Goals, subgoal_steps: u64) -> Goals {
        match self {
            Self::Hiql => {
                let actor = MixedGoals { uniform_future: 1.0, ..Default::default() };
                Goals { actor: Some(actor), subgoal_steps, ..goals }
            }
            _ => goals,
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
            setting: "method".to_owned(),
            expected: "cmd1, cmd2, crl, qrl, q-learning, gcbc, iql, tmd, gcivl, gciql or hiql",
            found: format!("`{name}`"),
        })
    }
}
