//! How often a policy reaches its goals.

use cm_envs::{Outcome, success_rate, task_success_rates};

use crate::{Walked, World};

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
