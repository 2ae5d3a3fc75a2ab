//! Distances between states that come with actions.

use cm_nn::{DfdxBackend, Var};

use super::{CHUNK, Model};
use crate::{Error, Result};

type Rows = Var<DfdxBackend>;

impl Model {
    /// How far it is from each `(s, a)` to the same row's `(g, a')`, states and actions one after
    /// another in their own units: the distance that the method itself learns.
    pub fn distances_with_actions(
        &self,
        (from, action): (&[f32], &[f32]),
        (to, goal_action): (&[f32], &[f32]),
    ) -> Result<Vec<f32>> {
        let (state, width) = (self.dimensions.state(), self.dimensions.action());
        self.check_rows("from", from.len(), state)?;
        let rows = from.len() / state;
        let wanted = [
            ("to", to.len(), rows * state),
            ("action", action.len(), rows * width),
            ("goal action", goal_action.len(), rows * width),
        ];
        for (what, found, expected) in wanted {
            if found != expected {
                return Err(Error::Width { what: what.to_owned(), expected, found });
            }
        }
        let mut distances = Vec::with_capacity(rows);
        let states = from.chunks(CHUNK * state).zip(to.chunks(CHUNK * state));
        let actions = action.chunks(CHUNK * width).zip(goal_action.chunks(CHUNK * width));
        for ((from, to), (action, goal_action)) in states.zip(actions) {
            let (from, to) = (self.states(from)?, self.states(to)?);
            let (action, goal_action) = (self.actions(action)?, self.actions(goal_action)?);
            distances.extend(self.learned(&from, &action, &to, &goal_action)?);
        }
        Ok(distances)
    }

    /// The action that the policy prefers at each row of `states` for each row of goal states.
    pub fn act(&self, states: &[f32], goals: &[f32]) -> Result<Vec<f32>> {
        self.check_rows("states", states.len(), self.dimensions.state())?;
        if states.len() != goals.len() {
            let (what, expected) = ("goals".to_owned(), states.len());
            return Err(Error::Width { what, expected, found: goals.len() });
        }
        let (states, goals) = (self.states(states)?, self.states(goals)?);
        let mut actions = self.preferred(&states, &goals)?.to_vec()?;
        self.scaling.unscale_actions(&mut actions);
        Ok(actions)
    }

    /// [`ReadOut::NoAction`](crate::ReadOut::NoAction).
    pub(super) fn without_action(&self, from: &Rows, to: &Rows) -> Result<Vec<f32>> {
        let none = Var::full(&self.backend, [from.rows(), self.dimensions.action()], 0.0)?;
        self.learned(from, &none, to, &none)
    }

    /// [`ReadOut::DataActions`](crate::ReadOut::DataActions).
    pub(super) fn with_data_actions(&self, from: &Rows, to: &Rows) -> Result<Vec<f32>> {
        let (rows, width) = (from.rows(), self.dimensions.action());
        let action = self.preferred(from, to)?;
        let seen = self.extras.goal_actions.chunks_exact(width);
        let count = seen.len() as f32;
        let mut mean = vec![0.0; rows];
        for goal_action in seen {
            let goal_action = Var::new(&self.backend, [rows, width], goal_action.repeat(rows))?;
            let found = self.learned(from, &action, to, &goal_action)?;
            mean.iter_mut().zip(found).for_each(|(mean, found)| *mean += found / count);
        }
        Ok(mean)
    }

    fn preferred(&self, states: &Rows, goals: &Rows) -> Result<Rows> {
        Ok(self.learner.act(states, &goals.slice_columns(self.dimensions.goal_columns())?)?)
    }

    fn learned(&self, from: &Rows, action: &Rows, to: &Rows, goal: &Rows) -> Result<Vec<f32>> {
        let method = self.settings.method.method().title();
        let found = self.learner.distance(from, action, to, goal)?;
        Ok(found.ok_or(Error::NoDistance { method })?.to_vec()?)
    }

    fn actions(&self, rows: &[f32]) -> Result<Rows> {
        let width = self.dimensions.action();
        let mut rows = rows.to_vec();
        self.scaling.actions(&mut rows);
        Ok(Var::new(&self.backend, [rows.len() / width, width], rows)?)
    }
}
