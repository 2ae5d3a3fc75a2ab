//! Which number a trained model gives for the distance between two states.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a distance between states is read out of networks that also see actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadOut {
    /// Zeros where actions belong, at both ends: the authors' read-out of the 2-D experiment, whose
    /// figures use it. A quasimetric, but about an action that data may never have had.
    #[default]
    NoAction,
    /// The policy's action at the start, the mean over some of the data's actions at the goal: what
    /// the loss has seen. Not a quasimetric.
    DataActions,
    /// The metric on states alone ([`cm_learner::StateDistance`]): an exact quasimetric.
    States,
    /// The larger of that metric and the shortest way by it over states of the data, each link of
    /// which some trajectory took ([`Roads`](crate::Roads)): the larger of two quasimetrics is one
    /// too, and what lies just behind a goal is as far as the way round. As [`States`](Self::States)
    /// until training has ended, or if the data's trajectories hardly meet.
    Composed,
}

impl ReadOut {
    /// Whether the triangle inequality holds whatever the weights, for a method whose metric is a
    /// quasimetric.
    pub const fn is_quasimetric(self) -> bool {
        !matches!(self, Self::DataActions)
    }
}

impl fmt::Display for ReadOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoAction => "no-action",
            Self::DataActions => "data-actions",
            Self::States => "states",
            Self::Composed => "composed",
        })
    }
}
