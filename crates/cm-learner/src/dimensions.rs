//! Sizes of what a method sees.

use std::ops::Range;

use cm_nn::check::require;

use crate::Result;

/// Sizes of states and actions, and which coordinates of a state are the goal that a policy sees.
///
/// Critics see the whole future state as the goal; a policy sees only these coordinates, such as
/// the xy of a maze.
///
/// ```
/// use cm_learner::Dimensions;
///
/// let ant = Dimensions::new(29, 8, 0..2)?;
/// assert_eq!(ant.goal_columns().len(), 2);
/// assert!(Dimensions::new(29, 8, 28..30).is_err());
/// # Ok::<(), cm_learner::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimensions {
    state: usize,
    action: usize,
    goal: Range<usize>,
}

impl Dimensions {
    /// At least one state and one action coordinate, and a non-empty range of goal coordinates
    /// within the state.
    pub fn new(state: usize, action: usize, goal: Range<usize>) -> Result<Self> {
        let sizes = format_args!("{state} and {action}");
        let some = state > 0 && action > 0;
        require(some, "dimensions", "at least one state and one action coordinate", sizes)?;
        let inside = !goal.is_empty() && goal.end <= state;
        let found = format_args!("{goal:?} of {state}");
        require(inside, "goal", "a non-empty range of the state's coordinates", found)?;
        Ok(Self { state, action, goal })
    }

    /// Coordinates of a state.
    pub fn state(&self) -> usize {
        self.state
    }

    /// Coordinates of an action.
    pub fn action(&self) -> usize {
        self.action
    }

    /// Which coordinates of a state the policy sees as its goal.
    pub fn goal_columns(&self) -> Range<usize> {
        self.goal.clone()
    }
}
