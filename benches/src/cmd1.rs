//! One training step of CMD-1 on the workspace's backend: critic and potential by symmetric InfoNCE, policy by distance and behavioural
//! cloning with C-Mixup, Adam, goals drawn inside the step.

use cm_nn::{Adam, Backend, Direction, Mlp, MlpSettings, Over, Parameters, Result, Var, gradients};
use cm_quasimetric::Head;
use cm_random::{Philox, below_u32, unit_f32};

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
const ACTOR_NOISE: u32 = 0x100;
const PARTNER: u32 = 0x101;
const CLONING_NOISE: u32 = 0x102;

/// Trajectories of random states and actions.
pub struct Data {
    rows: u32,
    states: Vec<f32>,
    actions: Vec<f32>,
}

/// Rows of a batch on the host: states, actions, goals, goal actions.
pub struct HostBatch {
    /// `[BATCH, STATE]`
    pub state: Vec<f32>,
    /// `[BATCH, ACTION]`
    pub action: Vec<f32>,
    /// `[BATCH, STATE]`
    pub goal: Vec<f32>,
    /// `[BATCH, ACTION]`
    pub goal_action: Vec<f32>,
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
        HostBatch {
            state: rows(&self.states, STATE, &now),
            action: rows(&self.actions, ACTION, &now),
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

/// Networks and optimisers.
pub struct Learner<B: Backend> {
    backend: B,
    critic: Parameters<B>,
    actor: Parameters<B>,
    encoder: Mlp<B>,
    potential: Mlp<B>,
    policy: Mlp<B>,
    critic_adam: Adam<B>,
    actor_adam: Adam<B>,
}

struct Batch<B: Backend> {
    state: Var<B>,
    action: Var<B>,
    goal: Var<B>,
    goal_action: Var<B>,
}

impl<B: Backend> Learner<B> {
    /// With hidden layers of these widths.
    pub fn new(backend: &B, hidden: &[usize]) -> Result<Self> {
        let settings = MlpSettings { hidden: hidden.to_vec(), ..Default::default() };
        let (mut critic, mut actor) = (Parameters::new(backend, 0), Parameters::new(backend, 0));
        let encoder = Mlp::new(&mut critic, "encoder", STATE + ACTION, &settings, FEATURES)?;
        let potential = Mlp::new(&mut critic, "potential", STATE, &settings, 1)?;
        let policy = Mlp::new(&mut actor, "policy", STATE + GOAL, &settings, 2 * ACTION)?;
        let critic_adam = Adam::new(&critic, Default::default())?;
        let actor_adam = Adam::new(&actor, Default::default())?;
        let backend = backend.clone();
        Ok(Self { backend, critic, actor, encoder, potential, policy, critic_adam, actor_adam })
    }

    /// Draws a batch and moves every parameter once; returns the critic's loss.
    pub fn step(&self, data: &Data) -> Result<Var<B>> {
        let host = data.batch(self.backend.step()?);
        let var = |columns, values| Var::new(&self.backend, [BATCH, columns], values);
        let batch = Batch {
            state: var(STATE, host.state)?,
            action: var(ACTION, host.action)?,
            goal: var(STATE, host.goal)?,
            goal_action: var(ACTION, host.goal_action)?,
        };
        let critic = || self.critic_loss(&batch);
        let (loss, mut critic) = gradients(&self.backend, &[&self.critic], critic)?;
        let actor = || self.actor_loss(&batch);
        let (_, mut actor) = gradients(&self.backend, &[&self.actor], actor)?;
        self.critic_adam.step(&mut critic)?;
        self.actor_adam.step(&mut actor)?;
        self.backend.advance()?;
        Ok(loss)
    }

    fn critic_loss(&self, batch: &Batch<B>) -> Result<Var<B>> {
        let here = Var::concat_columns(&[&batch.state, &batch.action])?;
        let there = Var::concat_columns(&[&batch.goal, &batch.goal_action.roll_rows(1)?])?;
        let features = self.encoder.forward(&Var::concat_rows(&[&here, &there])?)?;
        let (x, y) = (features.slice_rows(0..BATCH)?, features.slice_rows(BATCH..2 * BATCH)?);
        let distances = x.distance_pairs(&y, Head::MRN, None)?;
        let potential = self.potential.forward(&batch.goal)?.transpose()?;
        potential.sub(&distances)?.scale(1.0 / LOGIT_SCALE)?.info_nce(Direction::Symmetric)
    }

    fn actor_loss(&self, batch: &Batch<B>) -> Result<Var<B>> {
        let goal = batch.goal.slice_columns(0..GOAL)?;
        let input = Var::concat_columns(&[&batch.state, &goal])?;
        let action = self.act(&input, ACTOR_NOISE)?;
        let x = self.encoder.forward(&Var::concat_columns(&[&batch.state, &action])?)?;
        let y = self.encoder.forward(&Var::concat_columns(&[&batch.goal, &batch.goal_action])?)?;
        let distance = x.distance_rows(&y, Head::MRN, None)?.mean(Over::All)?;

        let lengths = input.square()?.sum(Over::Columns)?;
        let products = input.matmul(&input.transpose()?)?.scale(2.0)?;
        let nearness = products.sub(&lengths)?.sub(&lengths.transpose()?)?;
        let partner = nearness.scale(0.5 / (KERNEL * KERNEL))?.categorical(PARTNER)?;
        let mixed = |x: &Var<B>| x.add(&x.gather_rows(&partner)?)?.scale(0.5);
        let cloned = self.act(&mixed(&input)?, CLONING_NOISE)?;
        let cloning = cloned.sub(&mixed(&batch.action)?)?.square()?.mean(Over::All)?;
        distance.scale(1.0 - CLONING)?.add(&cloning.scale(CLONING)?)
    }

    fn act(&self, input: &Var<B>, stream: u32) -> Result<Var<B>> {
        let heads = self.policy.forward(input)?;
        let mean = heads.slice_columns(0..ACTION)?;
        let scale = heads.slice_columns(ACTION..2 * ACTION)?.softplus()?.affine(1.0, 1e-6)?;
        let noise = Var::normal(&self.backend, mean.shape(), stream)?;
        mean.add(&scale.mul(&noise)?)?.tanh()
    }
}
