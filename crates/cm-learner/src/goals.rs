//! Goals beside those that values are learned for.

use cm_nn::{Backend, Var};

use crate::{Error, Result};

/// Which goals a row has beside its own, each kind with all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoalKinds {
    /// None: values and policies learn from the same goal.
    #[default]
    Shared,
    /// One that the policy learns from, drawn apart.
    Actor,
    /// And subgoals on the way to it.
    Hierarchy,
}

impl GoalKinds {
    /// How many states a row has for them.
    pub const fn count(self) -> usize {
        match self {
            Self::Shared => 0,
            Self::Actor => 1,
            Self::Hierarchy => 3,
        }
    }
}

/// Goals that a policy learns from, drawn apart from those of values.
#[derive(Clone)]
pub struct ActorGoals<B: Backend> {
    /// States `g` that the policy is to reach, `[n, state]`.
    pub goal: Var<B>,
    /// States on the way there; none unless a method has policies of two levels.
    pub subgoals: Option<Subgoals<B>>,
}

/// States some steps ahead, for a policy of two levels.
#[derive(Clone)]
pub struct Subgoals<B: Backend> {
    /// Where the policy of single actions is to go, `[n, state]`.
    pub low: Var<B>,
    /// Where the policy of subgoals is to send it on the way to the goal, `[n, state]`.
    pub high: Var<B>,
}

impl<B: Backend> ActorGoals<B> {
    /// From as many matrices as [`GoalKinds::count`] says: the goal, then the low and the high
    /// subgoal. None of none.
    pub fn from_states(states: Vec<Var<B>>) -> Result<Option<Self>> {
        let found = states.len();
        let mut states = states.into_iter();
        match (states.next(), states.next(), states.next(), states.next()) {
            (None, ..) => Ok(None),
            (Some(goal), None, ..) => Ok(Some(Self { goal, subgoals: None })),
            (Some(goal), Some(low), Some(high), None) => {
                Ok(Some(Self { goal, subgoals: Some(Subgoals { low, high }) }))
            }
            _ => Err(Error::Shape {
                operation: "actor goals",
                expected: "0, 1 or 3 matrices".to_owned(),
                found: found.to_string(),
            }),
        }
    }

    /// Their names and matrices.
    pub(crate) fn fields(&self) -> Vec<(&'static str, &Var<B>)> {
        let mut fields = vec![("batch actor goal", &self.goal)];
        if let Some(Subgoals { low, high }) = &self.subgoals {
            fields.extend([("batch low subgoal", low), ("batch high subgoal", high)]);
        }
        fields
    }
}
