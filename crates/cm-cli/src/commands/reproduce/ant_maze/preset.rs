//! Sizes and settings by name.

use cm_contrastive::ContrastiveLoss;
use cm_train::{Method, MethodSettings, Result};

/// How large the networks are and how long they are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Preset {
    /// The authors': 4 x 1024, batches of 1024, 500,000 steps.
    Paper,
    /// Half as wide: 4 x 512, batches of 256, 100,000 steps, the authors' settings otherwise.
    Half,
    /// A budget for a CPU: 2 x 256, batches of 256, 10,000 steps, policies held more closely to the
    /// data.
    Small,
}

/// How a policy comes from a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Policy {
    /// The distance from its own action and behaviour cloning, weighted.
    Sum,
    /// Behaviour cloning weighted by advantages at temperature 1.
    AdvantageWeighted,
}

/// Whose word is taken for the losses and rates of CMD-1, CMD-2, CRL and GCBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Origin {
    /// The authors' code: logits divided by 8, 0.2 of cloning by squared errors with mixup.
    Code,
    /// The paper's text: logits as they are, distance and log-density with equal weights, 5e-6 for
    /// CMD-2's contrastive network and 3e-4 for the rest; CRL as its own authors run it.
    Text,
    /// The same, but the policies of CMD-1 and CMD-2 have contrastive RL's weights, too: 0.95 of the
    /// distance to the row's own goal, 0.05 of the log-density.
    ContrastiveRl,
}

/// What networks see of states and actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum States {
    /// As they are, as in the authors' code.
    Plain,
    /// Every coordinate with mean 0 and deviation 1, actions divided by their largest size.
    Scaled,
}

/// The loss that tells goals from those of other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Contrast {
    /// InfoNCE in both directions, as in the paper's text.
    Symmetric,
    /// In one direction, with a penalty, as the authors' code runs it unless its defaults are
    /// changed.
    Cpc,
}

impl Origin {
    /// The preset with what it says of a method, if it says something. The paper's text has the
    /// settings of contrastive RL "whenever possible", so CRL is as that has it.
    fn preset(self, method: Method) -> Option<&'static str> {
        let name = match (self, method) {
            (Self::Code, _) => return None,
            (_, Method::Crl) => "original",
            (Self::ContrastiveRl, Method::Cmd1 | Method::Cmd2) => "contrastive-rl",
            _ => "paper",
        };
        method.presets().contains(&name).then_some(name)
    }
}

impl Contrast {
    pub(super) fn loss(self) -> ContrastiveLoss {
        match self {
            Self::Symmetric => ContrastiveLoss::Symmetric,
            Self::Cpc => ContrastiveLoss::CPC,
        }
    }
}

impl Preset {
    pub(super) fn states(self) -> States {
        match self {
            Self::Paper | Self::Half => States::Plain,
            Self::Small => States::Scaled,
        }
    }

    /// `small` has settings of its own, whatever the origin.
    pub(super) fn method(self, method: Method, origin: Origin) -> Result<MethodSettings> {
        let hidden = match self {
            Self::Paper => [1024; 4],
            Self::Half => [512; 4],
            Self::Small => return Ok(MethodSettings::ant_maze_small(method)),
        };
        match origin.preset(method) {
            Some(name) => {
                let mut settings = MethodSettings::preset(method, name)?;
                settings.set_hidden(&hidden);
                Ok(settings)
            }
            None => Ok(MethodSettings::ant_maze(method, &hidden)),
        }
    }

    pub(super) fn batch(self) -> usize {
        match self {
            Self::Paper => 1024,
            Self::Half | Self::Small => 256,
        }
    }

    pub(super) fn steps(self) -> u64 {
        match self {
            Self::Paper => 500_000,
            Self::Half => 100_000,
            Self::Small => 10_000,
        }
    }
}
