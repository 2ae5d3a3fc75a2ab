//! Sizes and settings by name.

use cm_train::{Method, MethodSettings};

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

impl Preset {
    pub(super) fn method(self, method: Method) -> MethodSettings {
        match self {
            Self::Paper => MethodSettings::ant_maze(method, &[1024; 4]),
            Self::Half => MethodSettings::ant_maze(method, &[512; 4]),
            Self::Small => MethodSettings::ant_maze_small(method),
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
