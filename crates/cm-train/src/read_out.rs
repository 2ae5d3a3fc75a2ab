//! Which number a trained model gives for the distance between two states.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a distance between states is read out of networks that also see actions.
///
/// ```
/// use std::path::PathBuf;
/// use cm_train::{Method, ReadOut, RunSettings};
///
/// // The authors' in the 2-D experiment; over the ways of the data for data of one's own.
/// assert_eq!(RunSettings::plane(Method::Cmd1).read_out, ReadOut::NoAction);
/// let own = RunSettings::own_data(Method::Cmd1, PathBuf::from("walks.csv"));
/// assert_eq!(own.read_out, ReadOut::Composed);
/// // As `--set read_out=data-actions` and settings files write it.
/// assert_eq!(ReadOut::DataActions.to_string(), "data-actions");
/// ```
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
    ///
    /// ```
    /// use cm_train::ReadOut;
    ///
    /// assert!(ReadOut::Composed.is_quasimetric() && ReadOut::States.is_quasimetric());
    /// assert!(!ReadOut::DataActions.is_quasimetric());
    /// ```
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
