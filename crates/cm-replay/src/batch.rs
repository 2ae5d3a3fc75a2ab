//! Buffers a batch is written into, structure of arrays.

use std::ops::Range;

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
    /// Goals that policies learn from; empty unless [`crate::Goals::actor`] is set.
    pub actor: GoalRows,
    /// Where a policy of single actions is to go; empty unless there are subgoals.
    pub low: GoalRows,
    /// Where a policy of subgoals is to send it; empty unless there are subgoals.
    pub high: GoalRows,
}

/// Further goals of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoalRows {
    /// Their steps, `[B]`.
    pub steps: Vec<usize>,
    /// Observations there, `[B, o]`.
    pub observations: Vec<f32>,
}

impl GoalRows {
    /// Buffers for `rows` draws from `data`.
    pub fn new(data: &Dataset, rows: usize) -> Self {
        let observations = vec![0.0; rows * data.observations().columns()];
        Self { steps: vec![0; rows], observations }
    }

    fn as_mut(&mut self) -> GoalRowsMut<'_> {
        GoalRowsMut { steps: &mut self.steps, observations: &mut self.observations }
    }
}

impl Batch {
    /// Buffers for `rows` draws from `data`, without further goals ([`crate::Sampler::batch`] has
    /// them).
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
            ..Self::default()
        }
    }

    /// Whether it has so many rows and [`crate::Sampler::columns`].
    pub(crate) fn has_columns(&self, rows: usize, columns: usize) -> bool {
        let further = [(&self.actor, 2), (&self.low, 3), (&self.high, 3)];
        let wanted = |least: usize| if columns > least { rows } else { 0 };
        self.steps.len() == rows
            && further.iter().all(|(goals, least)| goals.steps.len() == wanted(*least))
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
            actor: self.actor.as_mut(),
            low: self.low.as_mut(),
            high: self.high.as_mut(),
        }
    }
}

/// The buffers of [`GoalRows`] wherever the caller has them; both empty if they are not wanted.
#[derive(Debug, Default)]
pub struct GoalRowsMut<'a> {
    /// Their steps, `[B]`.
    pub steps: &'a mut [usize],
    /// Observations there, `[B, o]`.
    pub observations: &'a mut [f32],
}

impl<'a> GoalRowsMut<'a> {
    /// Writes the steps of some rows.
    pub(crate) fn write(&mut self, rows: Range<usize>, steps: &[usize]) {
        if !self.steps.is_empty() {
            self.steps[rows.clone()].copy_from_slice(&steps[..rows.len()]);
        }
    }

    fn check(&self, buffer: &'static str, rows: usize, columns: usize) -> Result<()> {
        let wanted = if self.steps.is_empty() { 0 } else { rows };
        for (found, expected) in
            [(self.steps.len(), wanted), (self.observations.len(), wanted * columns)]
        {
            if found != expected {
                return Err(Error::Buffer { buffer, expected, found });
            }
        }
        Ok(())
    }

    fn split_at(self, rows: usize, total: usize) -> (Self, Self) {
        let (steps, other_steps) = self.steps.split_at_mut(self.steps.len() / total * rows);
        let observations = self.observations;
        let (observations, others) = observations.split_at_mut(observations.len() / total * rows);
        let second = Self { steps: other_steps, observations: others };
        (Self { steps, observations }, second)
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
    /// Goals that policies learn from.
    pub actor: GoalRowsMut<'a>,
    /// Where a policy of single actions is to go.
    pub low: GoalRowsMut<'a>,
    /// Where a policy of subgoals is to send it.
    pub high: GoalRowsMut<'a>,
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
        let columns = data.observations().columns();
        self.actor.check("actor", rows, columns)?;
        self.low.check("low", rows, columns)?;
        self.high.check("high", rows, columns)?;
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
        let (actor, other_actor) = self.actor.split_at(rows, total);
        let (low, other_low) = self.low.split_at(rows, total);
        let (high, other_high) = self.high.split_at(rows, total);
        let first = BatchMut {
            steps,
            goal_steps,
            observations,
            actions,
            next_observations,
            goals,
            goal_actions,
            actor,
            low,
            high,
        };
        let second = BatchMut {
            steps: other_steps,
            goal_steps: other_goal_steps,
            observations: other_observations,
            actions: other_actions,
            next_observations: other_next_observations,
            goals: other_goals,
            goal_actions: other_goal_actions,
            actor: other_actor,
            low: other_low,
            high: other_high,
        };
        (first, second)
    }
}
