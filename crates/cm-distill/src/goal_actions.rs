//! The dummy action `a'` at the goal.

use cm_learner::{Transitions, streams};
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
    /// Each goal gets the action that was taken in the row above, not at that row's goal.
    RolledData,
}

impl GoalActions {
    /// The actions at the goals of a batch.
    ///
    /// ```
    /// use cm_distill::GoalActions;
    /// use cm_learner::Transitions;
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let column = |values: [f32; 3]| Var::new(&backend, [3, 1], values.to_vec());
    /// let batch = Transitions {
    ///     state: column([0.0; 3])?,
    ///     action: column([0.1, 0.2, 0.3])?,
    ///     next_state: column([0.0; 3])?,
    ///     goal: column([0.0; 3])?,
    ///     goal_action: column([1.0, 2.0, 3.0])?,
    ///     steps_to_goal: column([1.0; 3])?,
    ///     actor_goals: None,
    /// };
    /// assert_eq!(GoalActions::Rolled.of(&batch)?.to_vec()?, [3.0, 1.0, 2.0]);
    /// assert_eq!(GoalActions::RolledData.of(&batch)?.to_vec()?, [0.3, 0.1, 0.2]);
    /// let mut permuted = GoalActions::Permuted.of(&batch)?.to_vec()?;
    /// permuted.sort_by(f32::total_cmp);
    /// assert_eq!(permuted, [1.0, 2.0, 3.0]);
    /// # Ok::<(), cm_distill::Error>(())
    /// ```
    pub fn of<B: Backend>(self, batch: &Transitions<B>) -> Result<Var<B>> {
        let goal_action = &batch.goal_action;
        match self {
            Self::Rolled => goal_action.roll_rows(1),
            Self::RolledData => batch.action.roll_rows(1),
            Self::Permuted => {
                let rows = goal_action.rows();
                let order = Var::permutation(goal_action.backend(), rows, streams::GOAL_ACTIONS)?;
                goal_action.gather_rows(&order)
            }
        }
    }
}
