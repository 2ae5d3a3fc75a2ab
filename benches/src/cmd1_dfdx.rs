//! The step of [`Step::cmd1`](crate::steps::Step::cmd1) composed of dfdx's own operations, modules
//! and optimiser.

use cm_random::{Philox, unit_f32};
use dfdx::optim::{Adam, AdamConfig, Optimizer};
use dfdx::prelude::*;

use crate::steps::{ACTION, BATCH, CLONING, Data, FEATURES, GOAL, KERNEL, LOGIT_SCALE, STATE};

type Matrix<T = NoneTape> = Tensor<(usize, usize), f32, Cpu, T>;
type Taped = Matrix<OwnedTape<f32, Cpu>>;
type Hidden<const WIDTH: usize> = (Linear<WIDTH, WIDTH>, ReLU);

const IN: usize = STATE + ACTION;
const POLICY_IN: usize = STATE + GOAL;
const POLICY_OUT: usize = 2 * ACTION;

/// A learner whose networks have the given hidden layers; dfdx's modules have their sizes in their
/// types.
macro_rules! learner {
    ($module:ident, $width:literal, $($hidden:ty),*) => {
        #[doc = concat!("Hidden layers of ", $width, ".")]
        pub mod $module {
            use super::*;

            type Net<const I: usize, const O: usize> =
                ((Linear<I, $width>, ReLU), $($hidden,)* Linear<$width, O>);
            type Built<const I: usize, const O: usize> =
                <Net<I, O> as BuildOnDevice<Cpu, f32>>::Built;

            /// Networks and optimisers.
            pub struct Learner {
                dev: Cpu,
                step: u64,
                encoder: Built<IN, FEATURES>,
                potential: Built<STATE, 1>,
                policy: Built<POLICY_IN, POLICY_OUT>,
                encoder_adam: Adam<Built<IN, FEATURES>, f32, Cpu>,
                potential_adam: Adam<Built<STATE, 1>, f32, Cpu>,
                policy_adam: Adam<Built<POLICY_IN, POLICY_OUT>, f32, Cpu>,
            }

            impl Learner {
                /// Initialised by dfdx.
                pub fn new() -> Self {
                    let dev = Cpu::default();
                    let config = AdamConfig { lr: 5e-5, ..Default::default() };
                    let encoder = dev.build_module::<Net<IN, FEATURES>, f32>();
                    let potential = dev.build_module::<Net<STATE, 1>, f32>();
                    let policy = dev.build_module::<Net<POLICY_IN, POLICY_OUT>, f32>();
                    Self {
                        encoder_adam: Adam::new(&encoder, config),
                        potential_adam: Adam::new(&potential, config),
                        policy_adam: Adam::new(&policy, config),
                        dev,
                        step: 0,
                        encoder,
                        potential,
                        policy,
                    }
                }

                /// Draws a batch and moves every parameter once; returns the critic's loss.
                pub fn step(&mut self, data: &Data) -> f32 {
                    let batch = Batch::new(&self.dev, data, self.step);
                    self.step += 1;
                    let (loss, critic) = self.critic(&batch);
                    let actor = self.actor(&batch);
                    self.encoder_adam.update(&mut self.encoder, &critic).expect("gradients");
                    self.potential_adam.update(&mut self.potential, &critic).expect("gradients");
                    self.policy_adam.update(&mut self.policy, &actor).expect("gradients");
                    loss
                }

                fn critic(&self, batch: &Batch) -> (f32, Gradients<f32, Cpu>) {
                    let here = beside(batch.state.clone().leaky_traced(), batch.action.clone());
                    let there = beside(batch.goal.clone(), batch.other_action.clone());
                    let (x, tape) = self.encode(here).split_tape();
                    let (y, tape) = self.encode(there.put_tape(tape)).split_tape();
                    let distances = pairwise(x.put_tape(tape), y.retaped());
                    let goal = batch.goal.clone().realize::<(usize, Const<STATE>)>();
                    let potential = self.potential.forward(goal.leaky_traced());
                    let potential = potential.reshape_like(&(BATCH,));
                    let potential = potential.broadcast_like::<_, Axis<0>>(&(BATCH, BATCH));
                    let loss = info_nce((potential - distances) / LOGIT_SCALE);
                    (loss.array(), loss.backward())
                }

                fn actor(&self, batch: &Batch) -> Gradients<f32, Cpu> {
                    let input = beside(batch.state.clone(), batch.goal.clone().slice((.., ..GOAL)));
                    let action = self.act(input.clone().leaky_traced());
                    let (action, tape) = action.split_tape();
                    let x = self.encode(beside(batch.state.clone().put_tape(tape), action));
                    let y = self.encoder.forward(
                        beside(batch.goal.clone(), batch.goal_action.clone()).realize::<(usize, Const<IN>)>(),
                    );
                    let distance = rowwise(x, y.realize::<(usize, usize)>()).mean::<Rank0, _>();

                    let partner = partners(&input, self.step);
                    let mixed = |x: &Matrix| {
                        let other = x.clone().gather(self.dev.tensor_from_vec(partner.clone(), (BATCH,)));
                        (x.clone() + other) * 0.5
                    };
                    let cloned = self.act(mixed(&input).leaky_traced());
                    let cloning = (cloned - mixed(&batch.action)).square().mean::<Rank0, _>();
                    (distance * (1.0 - CLONING) + cloning * CLONING).backward()
                }

                fn encode(&self, x: Taped) -> Taped {
                    let x = x.realize::<(usize, Const<IN>)>();
                    self.encoder.forward(x).realize::<(usize, usize)>()
                }

                fn act(&self, input: Taped) -> Taped {
                    let heads = self.policy.forward(input.realize::<(usize, Const<POLICY_IN>)>());
                    let heads = heads.realize::<(usize, usize)>();
                    let mean = heads.with_empty_tape().slice((.., ..ACTION)).realize::<(usize, usize)>();
                    let scale = heads.slice((.., ACTION..)).realize::<(usize, usize)>();
                    let scale = (scale.exp() + 1.0).ln() + 1e-6;
                    let noise: Matrix = self.dev.sample_normal_like(&(BATCH, ACTION));
                    (scale * noise + mean).tanh()
                }
            }

            impl Default for Learner {
                fn default() -> Self {
                    Self::new()
                }
            }
        }
    };
}

learner!(wide, 512, Hidden<512>, Hidden<512>, Hidden<512>);
learner!(narrow, 64, Hidden<64>, Hidden<64>);

struct Batch {
    state: Matrix,
    action: Matrix,
    goal: Matrix,
    goal_action: Matrix,
    /// The goal actions rolled by one row.
    other_action: Matrix,
}

impl Batch {
    fn new(dev: &Cpu, data: &Data, step: u64) -> Self {
        let host = data.batch(step);
        let mut rolled = host.goal_action.clone();
        rolled.rotate_right(ACTION);
        let matrix = |columns, values| dev.tensor_from_vec(values, (BATCH, columns));
        Self {
            state: matrix(STATE, host.state),
            action: matrix(ACTION, host.action),
            goal: matrix(STATE, host.goal),
            goal_action: matrix(ACTION, host.goal_action),
            other_action: matrix(ACTION, rolled),
        }
    }
}

fn beside<T: Tape<f32, Cpu>>(x: Matrix<T>, y: Matrix) -> Matrix<T> {
    (x, y).concat_along(Axis::<1>)
}

/// MRN by broadcasting.
fn pairwise(x: Taped, y: Taped) -> Taped {
    let cube = (BATCH, BATCH, FEATURES);
    let difference = x.broadcast_like::<_, Axis<1>>(&cube) - y.broadcast_like::<_, Axis<0>>(&cube);
    let symmetric = difference.with_empty_tape().slice((.., .., ..FEATURES / 2));
    let asymmetric = difference.slice((.., .., FEATURES / 2..));
    let square = symmetric.square().sum::<(usize, usize), Axis<2>>();
    (square + 1e-8).sqrt() + asymmetric.relu().max::<(usize, usize), Axis<2>>()
}

/// MRN between corresponding rows.
fn rowwise(x: Taped, y: Matrix) -> Tensor<(usize,), f32, Cpu, OwnedTape<f32, Cpu>> {
    let difference = x - y;
    let symmetric = difference.with_empty_tape().slice((.., ..FEATURES / 2));
    let asymmetric = difference.slice((.., FEATURES / 2..));
    let square = symmetric.square().sum::<(usize,), Axis<1>>();
    (square + 1e-8).sqrt() + asymmetric.relu().max::<(usize,), Axis<1>>()
}

fn info_nce(logits: Taped) -> Tensor<Rank0, f32, Cpu, OwnedTape<f32, Cpu>> {
    let dev = logits.device().clone();
    let mut identity = vec![0.0; BATCH * BATCH];
    identity.iter_mut().step_by(BATCH + 1).for_each(|x| *x = 1.0 / BATCH as f32);
    let identity: Matrix = dev.tensor_from_vec(identity, (BATCH, BATCH));
    let rows = logits.with_empty_tape().logsumexp::<(usize,), Axis<1>>().mean::<Rank0, _>();
    let columns = logits.with_empty_tape().logsumexp::<(usize,), Axis<0>>().mean::<Rank0, _>();
    let diagonal = (logits * identity).sum::<Rank0, _>();
    (rows + columns) * 0.5 - diagonal
}

/// C-Mixup's partners, drawn on the host since dfdx has no such operation.
fn partners(input: &Matrix, step: u64) -> Vec<usize> {
    let products = input.clone().matmul(input.clone().permute::<_, Axes2<1, 0>>()).as_vec();
    let row = |i: usize| {
        let near = |j: usize| {
            2.0 * products[i * BATCH + j] - products[i * (BATCH + 1)] - products[j * (BATCH + 1)]
        };
        let weights = (0..BATCH).map(|j| (near(j) / (2.0 * KERNEL * KERNEL)).exp());
        let weights = weights.collect::<Vec<f32>>();
        let mut left =
            unit_f32(Philox::new(0).block(step, 1, i as u32)[0]) * weights.iter().sum::<f32>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        chosen.unwrap_or(BATCH - 1)
    };
    (0..BATCH).map(row).collect()
}

#[cfg(test)]
mod tests {
    use cm_nn::DfdxBackend;

    use super::*;

    /// Untrained networks of either kind guess among the rows of the batch.
    #[test]
    fn both_steps_start_at_chance() {
        let data = Data::new();
        let mut ours = crate::steps::Step::cmd1(&DfdxBackend::new(0), &[64; 3]);
        let metrics = ours.draw_and_run(&data).expect("shapes");
        let loss = metrics.iter().find(|(name, _)| *name == "contrastive_loss");
        let ours = loss.expect("CMD-1 is contrastive").1.item().expect("one replica");
        let plain = narrow::Learner::new().step(&data);
        let chance = (BATCH as f32).ln();
        assert!((ours - chance).abs() < 0.1, "{ours} {chance}");
        assert!((plain - chance).abs() < 0.1, "{plain} {chance}");
    }
}
