//! Which stream of random numbers each use draws from.

use cm_learner::streams::OTHERS;

/// The order in which QRL pairs states with goals.
pub(crate) const QRL_GOALS: u32 = OTHERS;
/// The order in which Q-learning takes other rows' goals.
pub(crate) const Q_GOALS: u32 = OTHERS + 1;
/// The policy's action in Q-learning's target.
pub(crate) const Q_NEXT_ACTION: u32 = OTHERS + 2;
