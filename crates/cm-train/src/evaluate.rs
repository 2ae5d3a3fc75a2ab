//! How often a policy reaches its goals.

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

/// Lets the policy of `learner` act in `world`, every episode beside the others.
pub fn evaluate<B: Backend>(
    world: &dyn World,
    learner: &dyn Learner<B>,
    backend: &B,
    scaling: &Scaling,
    plan: &Rollout,
) -> Result<Evaluation> {
    evaluate_sent(world, learner, backend, scaling, plan, &mut |_, _, _| Ok(()))
}

/// Replaces the goals of episodes, by their numbers and observations, with what their policy is sent
/// to.
pub(crate) type Send<'a> = dyn FnMut(&[usize], &[f32], &mut [f32]) -> Result<()> + 'a;

/// [`evaluate`] with a policy that is sent elsewhere than to its goals.
pub(crate) fn evaluate_sent<B: Backend>(
    world: &dyn World,
    learner: &dyn Learner<B>,
    backend: &B,
    scaling: &Scaling,
    plan: &Rollout,
    send: &mut Send<'_>,
) -> Result<Evaluation> {
    let (seen, columns) = (world.observation_width(), world.goal_columns());
    let outcomes = world.rollout(plan, &mut |numbers, observations, goals, actions| {
        let rows = observations.len() / seen;
        let (mut states, mut aims) = (observations.to_vec(), goals.to_vec());
        send(numbers, observations, &mut aims)?;
        scaling.states(&mut states);
        scaling.coordinates(columns.start, &mut aims, columns.len());
        let state = Var::new(backend, [rows, seen], states)?;
        let goal = Var::new(backend, [rows, columns.len()], aims)?;
        actions.copy_from_slice(&learner.act(&state, &goal)?.to_vec()?);
        scaling.unscale_actions(actions);
        Ok(())
    })?;
    let steps: usize = outcomes.iter().map(|outcome| outcome.steps).sum();
    Ok(Evaluation {
        success: success_rate(&outcomes),
        tasks: match world.tasks() {
            ..2 => Vec::new(),
            several => task_success_rates(&outcomes, several),
        },
        mean_steps: steps as f64 / outcomes.len().max(1) as f64,
        outcomes,
        walked: None,
    })
}
