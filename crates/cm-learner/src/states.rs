//! Distances between states, without actions.

use cm_nn::{Backend, Var};

use crate::{FixedDistance, Result};

/// A quasimetric on states alone: every state is a point, and distances compare points.
///
/// Whatever the weights are, the triangle inequality holds, and it is exactly 0 from a state to
/// itself.
pub trait StateDistance<B: Backend> {
    /// What distances compare: `[n, state]` to `[n, features]`.
    fn points(&self, state: &Var<B>) -> Result<Var<B>>;

    /// From each row of points to the same row of others, `[n, 1]`.
    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>>;

    /// From each row of points to every row of others, `[n, m]`.
    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>>;

    /// The logits of every state with every goal, `[n, n]`, whose contrastive loss was minimised;
    /// none if it was learned in another way.
    fn logits(&self, state: &Var<B>, goal: &Var<B>) -> Result<Option<Var<B>>> {
        let _ = (state, goal);
        Ok(None)
    }

    /// The same points and distances with the weights as they are now, for a few states at a time;
    /// none if the networks have no such form.
    fn fixed(&self) -> Result<Option<FixedDistance>> {
        Ok(None)
    }
}
