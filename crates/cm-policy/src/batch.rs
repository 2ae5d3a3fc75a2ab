//! What every method learns from.

use cm_nn::{Backend, Var};

use crate::{Dimensions, Error, Result};

/// Rows `(s_i, a_i, s'_i, g_i, a'_i)`: a step of a trajectory, the state after it, and a later state of the same trajectory with its action.
pub struct Batch<B: Backend> {
    /// States `s`, `[n, state]`.
    pub state: Var<B>,
    /// Actions `a`, `[n, action]`.
    pub action: Var<B>,
    /// States one step later, `[n, state]`.
    pub next_state: Var<B>,
    /// Future states `g` of the same trajectories, `[n, state]`.
    pub goal: Var<B>,
    /// Actions `a'` taken there, `[n, action]`.
    pub goal_action: Var<B>,
    /// How many steps lie between `s` and `g`, `[n, 1]`.
    pub steps_to_goal: Var<B>,
}

impl<B: Backend> Batch<B> {
    /// Refuses matrices whose shapes do not belong together or to `dimensions`.
    pub fn check(&self, dimensions: &Dimensions) -> Result<()> {
        let (rows, state, action) = (self.state.rows(), dimensions.state(), dimensions.action());
        let wanted = [
            ("batch state", &self.state, state),
            ("batch action", &self.action, action),
            ("batch next_state", &self.next_state, state),
            ("batch goal", &self.goal, state),
            ("batch goal_action", &self.goal_action, action),
            ("batch steps_to_goal", &self.steps_to_goal, 1),
        ];
        for (operation, var, columns) in wanted {
            if var.shape() != [rows, columns] {
                let expected = format!("[{rows}, {columns}]");
                let found = format!("{:?}", var.shape());
                return Err(Error::Shape { operation, expected, found });
            }
        }
        Ok(())
    }
}
