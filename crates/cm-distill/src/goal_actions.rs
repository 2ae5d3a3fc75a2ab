//! The dummy action `a'` at the goal.

use cm_learner::streams;
use cm_nn::{Backend, Var};
use serde::{Deserialize, Serialize};

use crate::Result;

/// How the batch's goal actions are shuffled, so that the distance to `(g, a')` learns not to
/// depend on `a'` (the paper, "Action-Invariance").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoalActions {
    /// Each goal gets the action of the row above.
    Rolled,
    /// A random permutation.
    Permuted,
}

impl GoalActions {
    /// The goal actions in their new order.
    ///
    /// ```
    /// use cm_distill::GoalActions;
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let actions = Var::new(&DfdxBackend::new(0), [3, 1], vec![1.0, 2.0, 3.0])?;
    /// assert_eq!(GoalActions::Rolled.shuffle(&actions)?.to_vec()?, [3.0, 1.0, 2.0]);
    /// let mut permuted = GoalActions::Permuted.shuffle(&actions)?.to_vec()?;
    /// permuted.sort_by(f32::total_cmp);
    /// assert_eq!(permuted, [1.0, 2.0, 3.0]);
    /// # Ok::<(), cm_distill::Error>(())
    /// ```
    pub fn shuffle<B: Backend>(self, goal_action: &Var<B>) -> Result<Var<B>> {
        match self {
            Self::Rolled => goal_action.roll_rows(1),
            Self::Permuted => {
                let rows = goal_action.rows();
                let order = Var::permutation(goal_action.backend(), rows, streams::GOAL_ACTIONS)?;
                goal_action.gather_rows(&order)
            }
        }
    }
}
