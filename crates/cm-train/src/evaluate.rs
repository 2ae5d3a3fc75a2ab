//! How often a policy reaches its goals.

use std::ops::Range;

use cm_envs::{Outcome, Rollout, success_rate, task_success_rates};
use cm_learner::Learner;
use cm_nn::{Backend, Var};

use crate::{Result, Scaling, Walked, World};

/// What an evaluation found.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The share of episodes that reached their goals.
    pub success: f64,
    /// The same of each of the world's tasks, if there are several.
    pub tasks: Vec<f64>,
    /// Mean number of steps of the episodes, those that failed counted at their horizon.
    pub mean_steps: f64,
    /// The episodes.
    pub outcomes: Vec<Outcome>,
    /// What became of plans, if the policy walked a road map.
    pub walked: Option<Walked>,
}

impl Evaluation {
    pub(crate) fn new(world: &dyn World, outcomes: Vec<Outcome>, walked: Option<Walked>) -> Self {
        let steps: usize = outcomes.iter().map(|outcome| outcome.steps).sum();
        Self {
            success: success_rate(&outcomes),
            tasks: match world.tasks() {
                ..2 => Vec::new(),
                several => task_success_rates(&outcomes, several),
            },
            mean_steps: steps as f64 / outcomes.len().max(1) as f64,
            outcomes,
            walked,
        }
    }
}

/// Lets the policy of `learner` act in `world`, all episodes at once on this thread.
/// [`Model::evaluate`](crate::Model::evaluate) takes all threads.
pub fn evaluate<B: Backend>(
    world: &dyn World,
    learner: &dyn Learner<B>,
    backend: &B,
    scaling: &Scaling,
    plan: &Rollout,
) -> Result<Evaluation> {
    let policy = Policy { learner, backend, scaling };
    let outcomes = policy.act(world, plan, 0..plan.episodes, &mut |_, _, _| Ok(()))?;
    Ok(Evaluation::new(world, outcomes, None))
}

/// Replaces the goals of episodes, by their numbers and observations, with what their policy is sent
/// to.
pub(crate) type Send<'a> = dyn FnMut(&[usize], &[f32], &mut [f32]) -> Result<()> + 'a;

/// A policy with all that it takes to act.
pub(crate) struct Policy<'a, B: Backend> {
    pub(crate) learner: &'a dyn Learner<B>,
    pub(crate) backend: &'a B,
    pub(crate) scaling: &'a Scaling,
}

impl<B: Backend> Policy<'_, B> {
    /// Acts in the episodes `numbers`, sent elsewhere than to their goals.
    pub(crate) fn act(
        &self,
        world: &dyn World,
        plan: &Rollout,
        numbers: Range<usize>,
        send: &mut Send<'_>,
    ) -> Result<Vec<Outcome>> {
        let (seen, columns) = (world.observation_width(), world.goal_columns());
        world.rollout(plan, numbers, &mut |numbers, observations, goals, actions| {
            let rows = observations.len() / seen;
            let (mut states, mut aims) = (observations.to_vec(), goals.to_vec());
            send(numbers, observations, &mut aims)?;
            self.scaling.states(&mut states);
            self.scaling.coordinates(columns.start, &mut aims, columns.len());
            let state = Var::new(self.backend, [rows, seen], states)?;
            let goal = Var::new(self.backend, [rows, columns.len()], aims)?;
            actions.copy_from_slice(&self.learner.act(&state, &goal)?.to_vec()?);
            self.scaling.unscale_actions(actions);
            Ok(())
        })
    }
}
