//! Buffers a batch is written into, structure of arrays.

use crate::{Dataset, Error, Result};

/// A batch's buffers, allocated once and filled again and again by [`crate::Sampler::fill`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The drawn steps i, `[B]`.
    pub steps: Vec<usize>,
    /// The steps j of their goals, `[B]`.
    pub goal_steps: Vec<usize>,
    /// Observations at i, `[B, o]`.
    pub observations: Vec<f32>,
    /// Actions at i, `[B, a]`.
    pub actions: Vec<f32>,
    /// Observations at i + 1, `[B, o]`.
    pub next_observations: Vec<f32>,
    /// Observations at j, `[B, o]`.
    pub goals: Vec<f32>,
    /// Actions at j, `[B, a]`.
    pub goal_actions: Vec<f32>,
}

impl Batch {
    /// Buffers for `rows` draws from `data`.
    pub fn new(data: &Dataset, rows: usize) -> Self {
        let observations = rows * data.observations().columns();
        let actions = rows * data.actions().columns();
        Self {
            steps: vec![0; rows],
            goal_steps: vec![0; rows],
            observations: vec![0.0; observations],
            actions: vec![0.0; actions],
            next_observations: vec![0.0; observations],
            goals: vec![0.0; observations],
            goal_actions: vec![0.0; actions],
        }
    }

    /// The buffers as slices.
    pub fn as_mut(&mut self) -> BatchMut<'_> {
        BatchMut {
            steps: &mut self.steps,
            goal_steps: &mut self.goal_steps,
            observations: &mut self.observations,
            actions: &mut self.actions,
            next_observations: &mut self.next_observations,
            goals: &mut self.goals,
            goal_actions: &mut self.goal_actions,
        }
    }
}

/// The same buffers wherever the caller has them.
///
/// `steps` and `goal_steps` say how many rows to draw. Each of the others holds one row of its
/// array per draw, or is empty if it is not wanted.
#[derive(Debug, Default)]
pub struct BatchMut<'a> {
    /// The drawn steps i, `[B]`.
    pub steps: &'a mut [usize],
    /// The steps j of their goals, `[B]`.
    pub goal_steps: &'a mut [usize],
    /// Observations at i, `[B, o]`.
    pub observations: &'a mut [f32],
    /// Actions at i, `[B, a]`.
    pub actions: &'a mut [f32],
    /// Observations at i + 1, `[B, o]`.
    pub next_observations: &'a mut [f32],
    /// Observations at j, `[B, o]`.
    pub goals: &'a mut [f32],
    /// Actions at j, `[B, a]`.
    pub goal_actions: &'a mut [f32],
}

impl<'a> BatchMut<'a> {
    pub(crate) fn check(&self, data: &Dataset) -> Result<()> {
        let rows = self.steps.len();
        let observations = rows * data.observations().columns();
        let actions = rows * data.actions().columns();
        let buffers = [
            ("observations", self.observations.len(), observations),
            ("actions", self.actions.len(), actions),
            ("next_observations", self.next_observations.len(), observations),
            ("goals", self.goals.len(), observations),
            ("goal_actions", self.goal_actions.len(), actions),
        ];
        if self.goal_steps.len() != rows {
            let (buffer, found) = ("goal_steps", self.goal_steps.len());
            return Err(Error::Buffer { buffer, expected: rows, found });
        }
        match buffers.into_iter().find(|&(_, found, expected)| found != expected && found != 0) {
            None => Ok(()),
            Some((buffer, found, expected)) => Err(Error::Buffer { buffer, expected, found }),
        }
    }

    /// The first `rows` rows and the others.
    pub(crate) fn split_at(self, rows: usize) -> (BatchMut<'a>, BatchMut<'a>) {
        let total = self.steps.len();
        // An unwanted buffer is empty, so both its parts are.
        let floats = |buffer: &'a mut [f32]| buffer.split_at_mut(buffer.len() / total * rows);
        let (steps, other_steps) = self.steps.split_at_mut(rows);
        let (goal_steps, other_goal_steps) = self.goal_steps.split_at_mut(rows);
        let (observations, other_observations) = floats(self.observations);
        let (actions, other_actions) = floats(self.actions);
        let (next_observations, other_next_observations) = floats(self.next_observations);
        let (goals, other_goals) = floats(self.goals);
        let (goal_actions, other_goal_actions) = floats(self.goal_actions);
        let first = BatchMut {
            steps,
            goal_steps,
            observations,
            actions,
            next_observations,
            goals,
            goal_actions,
        };
        let second = BatchMut {
            steps: other_steps,
            goal_steps: other_goal_steps,
            observations: other_observations,
            actions: other_actions,
            next_observations: other_next_observations,
            goals: other_goals,
            goal_actions: other_goal_actions,
        };
        (first, second)
    }
}
