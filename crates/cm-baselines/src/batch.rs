//! What a learner is trained on.

use cm_nn::{Backend, Var};

use crate::{Error, Result};

/// Numbers of columns that a learner is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// A state, and a goal as critics see it.
    pub state: usize,
    /// An action.
    pub action: usize,
    /// A goal as policies see it: the whole state or some coordinates of it.
    pub policy_goal: usize,
}

/// Transitions `s, a -> s'`, each with a goal `g` from later in its trajectory (hindsight) or from anywhere.
pub struct Batch<B: Backend> {
    /// States `s`, `[n, state]`.
    pub state: Var<B>,
    /// The actions taken there, `[n, action]`.
    pub action: Var<B>,
    /// The states that followed, `[n, state]`.
    pub next_state: Var<B>,
    /// Goals, as states, `[n, state]`.
    pub goal: Var<B>,
    /// The same goals as the policy sees them, `[n, policy_goal]`.
    pub policy_goal: Var<B>,
    /// 1 where `s'` reaches the goal, else 0, `[n, 1]`.
    pub reached: Var<B>,
}

impl<B: Backend> Clone for Batch<B> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            action: self.action.clone(),
            next_state: self.next_state.clone(),
            goal: self.goal.clone(),
            policy_goal: self.policy_goal.clone(),
            reached: self.reached.clone(),
        }
    }
}

impl<B: Backend> Batch<B> {
    /// Refuses a batch whose columns are not of these sizes or whose numbers of rows differ.
    pub fn check(&self, sizes: Sizes) -> Result<()> {
        let columns = [
            ("state", &self.state, sizes.state),
            ("action", &self.action, sizes.action),
            ("next_state", &self.next_state, sizes.state),
            ("goal", &self.goal, sizes.state),
            ("policy_goal", &self.policy_goal, sizes.policy_goal),
            ("reached", &self.reached, 1),
        ];
        for (field, matrix, columns) in columns {
            let (expected, found) = ([self.state.rows(), columns], matrix.shape());
            if expected != found {
                return Err(Error::Batch { field, expected, found });
            }
        }
        Ok(())
    }

    /// The same transitions with the goals of other rows: row `order[i]`'s for row `i`. No next state is taken to reach such a goal.
    pub fn with_goals_of(&self, order: &Var<B>) -> Result<Self> {
        Ok(Self {
            goal: self.goal.gather_rows(order)?,
            policy_goal: self.policy_goal.gather_rows(order)?,
            reached: self.reached.scale(0.0)?,
            ..self.clone()
        })
    }

    /// The rows of both.
    pub fn stacked(&self, other: &Self) -> Result<Self> {
        let stack = |a: &Var<B>, b: &Var<B>| Var::concat_rows(&[a, b]);
        Ok(Self {
            state: stack(&self.state, &other.state)?,
            action: stack(&self.action, &other.action)?,
            next_state: stack(&self.next_state, &other.next_state)?,
            goal: stack(&self.goal, &other.goal)?,
            policy_goal: stack(&self.policy_goal, &other.policy_goal)?,
            reached: stack(&self.reached, &other.reached)?,
        })
    }
}
