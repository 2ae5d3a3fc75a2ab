//! Captured training steps of the shipped learners, on any backend, and batches for them.

use std::rc::Rc;

use cm_learner::{Batch, BatchValues, Dimensions, GoalKinds, Metrics};
use cm_nn::{Backend, Captured, Result};
use cm_random::{Philox, below_u32, unit_f32};
use cm_train::{Method, MethodSettings};

use crate::numbers;

/// Rows of a batch.
pub const BATCH: usize = 256;
/// Columns of a state.
pub const STATE: usize = 29;
/// Columns of an action.
pub const ACTION: usize = 8;
/// Columns of a goal as the policy sees it.
pub const GOAL: usize = 2;
/// Columns of the quasimetric's features.
pub const FEATURES: usize = 512;
/// What logits are divided by: the root of the contrastive representation's width.
pub const LOGIT_SCALE: f32 = 8.0;
/// The share of behavioural cloning in the policy's loss.
pub const CLONING: f32 = 0.2;
/// The width of C-Mixup's kernel.
pub const KERNEL: f32 = 2.75;

const TRAJECTORY: u32 = 1000;
const DISCOUNT: f32 = 0.99;

/// Trajectories of random states and actions.
pub struct Data {
    rows: u32,
    states: Vec<f32>,
    actions: Vec<f32>,
}

/// Rows of a batch on the host.
pub struct HostBatch {
    /// `[BATCH, STATE]`
    pub state: Vec<f32>,
    /// `[BATCH, ACTION]`
    pub action: Vec<f32>,
    /// `[BATCH, STATE]`
    pub next_state: Vec<f32>,
    /// `[BATCH, STATE]`
    pub goal: Vec<f32>,
    /// `[BATCH, ACTION]`
    pub goal_action: Vec<f32>,
    /// `[BATCH, 1]`
    pub steps_to_goal: Vec<f32>,
}

impl HostBatch {
    /// Rows of random numbers.
    pub fn random(rows: usize, dimensions: &Dimensions, seed: u64) -> Self {
        let part = |part: u64, columns: usize| numbers(6 * seed + part, rows * columns);
        let (state, action) = (dimensions.state(), dimensions.action());
        Self {
            state: part(0, state),
            action: part(1, action),
            next_state: part(2, state),
            goal: part(3, state),
            goal_action: part(4, action),
            steps_to_goal: part(5, 1).iter().map(|u| (5.0 + 5.0 * u).floor()).collect(),
        }
    }

    /// What a learner's cells are filled with.
    fn values(&self) -> BatchValues<'_> {
        BatchValues {
            state: &self.state,
            action: &self.action,
            next_state: &self.next_state,
            goal: &self.goal,
            goal_action: &self.goal_action,
            steps_to_goal: &self.steps_to_goal,
            actor_goals: &[],
        }
    }
}

impl Data {
    /// A million transitions.
    pub fn new() -> Self {
        let rows = 1_000_000;
        let states = numbers(1, rows * STATE);
        Self { rows: rows as u32, states, actions: numbers(2, rows * ACTION) }
    }

    /// The batch of a step: uniform rows, and goals at geometric distances after them.
    pub fn batch(&self, step: u64) -> HostBatch {
        let philox = Philox::new(0);
        let pairs = (0..BATCH as u32).map(|row| {
            let words = philox.block(step, 0, row);
            let i = below_u32(words[0], self.rows);
            let end = (i / TRAJECTORY + 1) * TRAJECTORY - 1;
            let left = (end - i).max(1) as f32;
            let mass = 1.0 - DISCOUNT.powf(left);
            let ahead = (-unit_f32(words[1]) * mass).ln_1p() / DISCOUNT.ln();
            (i, (i + ahead as u32 + 1).min(end))
        });
        let (now, later): (Vec<u32>, Vec<u32>) = pairs.unzip();
        let next = now.iter().map(|&i| (i + 1).min(self.rows - 1)).collect::<Vec<_>>();
        let steps_to_goal = now.iter().zip(&later).map(|(&i, &j)| (j - i) as f32).collect();
        HostBatch {
            state: rows(&self.states, STATE, &now),
            action: rows(&self.actions, ACTION, &now),
            next_state: rows(&self.states, STATE, &next),
            steps_to_goal,
            goal: rows(&self.states, STATE, &later),
            goal_action: rows(&self.actions, ACTION, &later),
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Self::new()
    }
}

fn rows(data: &[f32], columns: usize, indices: &[u32]) -> Vec<f32> {
    let row = |&index: &u32| &data[index as usize * columns..][..columns];
    indices.iter().flat_map(row).copied().collect()
}

/// A learner's training step.
pub struct Step<B: Backend> {
    batch: Rc<Batch<B>>,
    goals: GoalKinds,
    captured: Captured<'static, Metrics<B>>,
    number: u64,
}

impl<B: Backend> Step<B> {
    /// The step of a method with these settings, on `rows` rows of these dimensions.
    pub fn new(
        backend: &B,
        settings: &MethodSettings,
        rows: usize,
        dimensions: &Dimensions,
    ) -> Self {
        let learner = settings.learner(backend, dimensions).expect("the settings are valid");
        let goals = match settings.method() {
            Method::Hiql => GoalKinds::Hierarchy,
            _ => GoalKinds::Shared,
        };
        let batch = Batch::with_goals(backend, rows, dimensions, goals);
        let batch = Rc::new(batch.expect("there are rows"));
        let cells = batch.clone();
        let captured = backend.capture(move || learner.step(&cells.load()?));
        Self { batch, goals, captured, number: 0 }
    }

    /// CMD-1 as the authors' code runs it, with hidden layers of these widths.
    pub fn cmd1(backend: &B, hidden: &[usize]) -> Self {
        let dimensions = Dimensions::new(STATE, ACTION, 0..GOAL).expect("the sizes fit");
        let settings = MethodSettings::ant_maze(Method::Cmd1, hidden);
        Self::new(backend, &settings, BATCH, &dimensions)
    }

    /// Does the step on the next batch of `data`, drawing included.
    pub fn draw_and_run(&mut self, data: &Data) -> Result<&Metrics<B>> {
        let batch = data.batch(self.number);
        self.number += 1;
        self.run(&batch)
    }

    /// Does the step on a batch; policies with goals of their own are given the values'.
    pub fn run(&mut self, batch: &HostBatch) -> Result<&Metrics<B>> {
        self.write(0, batch)?;
        self.replay()
    }

    /// Gives a replica its batch.
    pub fn write(&self, replica: usize, batch: &HostBatch) -> Result<()> {
        let goals = vec![batch.goal.as_slice(); self.goals.count()];
        self.batch.write(replica, &BatchValues { actor_goals: &goals, ..batch.values() })
    }

    /// Does the step on the batches that were written last.
    pub fn replay(&mut self) -> Result<&Metrics<B>> {
        self.captured.run()
    }
}
