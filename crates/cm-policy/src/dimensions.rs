//! Sizes of what a method sees.

use std::ops::Range;

use crate::{Error, Result};

/// Sizes of states and actions, and which coordinates of a state are the goal that a policy sees.
///
/// Critics see the whole future state as the goal; a policy sees only these coordinates, such as the xy of a maze.
///
/// ```
/// use cm_policy::Dimensions;
///
/// let ant = Dimensions::new(29, 8, 0..2)?;
/// assert_eq!(ant.goal_columns().len(), 2);
/// assert!(Dimensions::new(29, 8, 28..30).is_err());
/// # Ok::<(), cm_policy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimensions {
    state: usize,
    action: usize,
    goal: Range<usize>,
}

impl Dimensions {
    /// At least one state and one action coordinate, and a non-empty range of goal coordinates within the state.
    pub fn new(state: usize, action: usize, goal: Range<usize>) -> Result<Self> {
        let refuse = |setting, expected, found| Err(Error::Setting { setting, expected, found });
        if state == 0 || action == 0 {
            let found = format!("{state} and {action}");
            return refuse("dimensions", "at least one state and one action coordinate", found);
        }
        if goal.is_empty() || goal.end > state {
            let found = format!("{goal:?} of {state}");
            return refuse("goal", "a non-empty range of the state's coordinates", found);
        }
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
