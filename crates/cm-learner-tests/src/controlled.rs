//! The *controlled* successor distance, that of the best policy: TMD finds it from the data of
//! another policy; QRL finds it where nothing is left to chance, and only there.

use cm_baselines::{PushGoals, Qrl, QrlSettings, TransitionSettings};
use cm_distill::{Tmd, TmdSettings};
use cm_envs::tabular::{ControlledProcess, Discount, Policy, Sampling, Start, Trajectory};
use cm_learner::{Batch, BatchValues, Dimensions, DualOptimiser, Learner};
use cm_nn::testing::Suite;
use cm_nn::{AdamSettings, Backend, Head, MlpSettings, QuasimetricSettings, Reduction, Var};
use cm_policy::{ActorSettings, PolicySettings};
use cm_random::{Philox, below_u32, unit_f64};
use rand_core::Rng;

use crate::study::{Budget, Outcome, Point, Result, one_hot, worst_triangle};

/// The stream that batches are drawn from.
const BATCHES: u32 = 0x301;

/// A process whose actions are chosen at random in the data, and a discount.
pub struct Controlled {
    /// What it is called.
    pub name: &'static str,
    /// Whether every action has one outcome.
    pub deterministic: bool,
    process: ControlledProcess,
    discount: Discount,
}

/// A ring where nothing is left to chance, and a chain with a gamble: a jump that mostly leads back
/// to the start.
pub fn processes() -> Result<Vec<Controlled>> {
    // Ahead; or back, which odd states alone can.
    let ring = ControlledProcess::from_fn(STATES, 2, |state, action| match action {
        0 => [((state + 1) % STATES, 1.0)],
        _ => [(state - state % 2, 1.0)],
    })?;
    // Back, ahead, or a jump by half of the chain that succeeds once in ten times.
    let gamble = ControlledProcess::from_fn(STATES, 3, |state, action| match action {
        0 => [(state.saturating_sub(1), 0.9), (state, 0.1)],
        1 => [((state + 1).min(STATES - 1), 0.9), (state, 0.1)],
        _ => [((state + STATES / 2) % STATES, 0.1), (0, 0.9)],
    })?;
    let discount = Discount::new(0.8)?;
    Ok(vec![
        Controlled { name: "ring", deterministic: true, process: ring, discount },
        Controlled { name: "chain with a gamble", deterministic: false, process: gamble, discount },
    ])
}

/// States of each process.
const STATES: usize = 8;

/// Enough for every criterion, in seconds.
pub const BUDGET: Budget = Budget { trajectories: 2000, batch: 64, steps: 4500 };

/// Learning rates, each for a part of the steps.
const RATES: [(f32, f64); 2] = [(0.01, 2.0 / 3.0), (0.001, 1.0 / 3.0)];

/// Which learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlledMethod {
    /// Temporal metric distillation.
    Tmd,
    /// Quasimetric RL, its steps counted as a discount's.
    Qrl,
}

impl ControlledMethod {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tmd, Self::Qrl];

    /// As it is called in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Tmd => "TMD",
            Self::Qrl => "QRL",
        }
    }
}

/// Trains both on both processes: TMD finds the controlled distance of each, QRL that of the
/// deterministic one alone.
pub fn controlled_distances<B: Backend>(suite: &Suite<B>) {
    for process in processes().expect("the processes are valid") {
        let [tmd, qrl] = ControlledMethod::ALL
            .map(|method| process.run(&suite.make(1), method, &BUDGET, 1).expect("it trains"));
        let lacks = process.lacks(&tmd, &qrl);
        assert!(lacks.is_empty(), "{}: {lacks:?}", process.name);
    }
}

impl Controlled {
    /// Trains on trajectories of random actions and compares all pairs of states with the truth.
    pub fn run<B: Backend>(
        &self,
        backend: &B,
        method: ControlledMethod,
        budget: &Budget,
        seed: u64,
    ) -> Result<Outcome> {
        let (states, actions) = (self.process.states(), self.process.actions());
        let data = self.sample(budget, seed)?;
        // An action is seen together with its state, so that linear networks are tables.
        let dimensions = Dimensions::new(states, states * actions, 0..states)?;
        let batch = Batch::new(backend, budget.batch, &dimensions)?;
        let mut learner = method.learner(backend, &dimensions, self.discount, RATES[0].0)?;
        let mut step = 0;
        for (rate, share) in RATES {
            let next = method.learner(backend, &dimensions, self.discount, rate)?;
            next.restore(0, &learner.snapshot(0)?)?;
            learner = next;
            let mut captured = backend.capture(|| learner.step(&batch.load()?));
            for _ in 0..(share * budget.steps as f64) as u64 {
                self.write(&data, &batch, (seed, step), budget.batch)?;
                captured.run()?;
                step += 1;
            }
        }
        let metric = learner.states().ok_or("the method has no metric on states")?;
        let all = (0..states as u32).collect::<Vec<_>>();
        let points = metric.points(&Var::new(backend, [states; 2], one_hot(&all, states))?)?;
        // QRL counts steps.
        let unit = match method {
            ControlledMethod::Tmd => 1.0,
            ControlledMethod::Qrl => self.discount.step_length(),
        };
        let learned = metric.pairs(&points, &points)?.to_vec()?;
        let learned = learned.into_iter().map(|d| unit * f64::from(d)).collect::<Vec<_>>();
        self.compare(&learned)
    }

    /// What is wrong with the outcomes of TMD and QRL.
    pub fn lacks(&self, tmd: &Outcome, qrl: &Outcome) -> Vec<String> {
        let mut lacks = Vec::new();
        let mut require = |holds: bool, lack: String| {
            if !holds {
                lacks.push(lack);
            }
        };
        let close = |outcome: &Outcome| {
            let (rank, error) = (outcome.rank_correlation(), outcome.mean_error());
            let holds = rank >= 0.8 && error <= 0.22 && outcome.worst_triangle <= 1e-4;
            let triangle = outcome.worst_triangle;
            (holds, format!("rank {rank:.4}, mean error {error:.3}, triangle {triangle:e}"))
        };
        let ((tmd_close, of_tmd), (qrl_close, of_qrl)) = (close(tmd), close(qrl));
        require(tmd_close, format!("TMD is not close: {of_tmd}"));
        match self.deterministic {
            true => require(qrl_close, format!("QRL is not close: {of_qrl}")),
            // It takes what can happen for what will.
            false => {
                require(!qrl_close, format!("QRL should not be close: {of_qrl}"));
                let worse = qrl.mean_error() > tmd.mean_error();
                require(worse, format!("QRL ({of_qrl}) is no worse than TMD ({of_tmd})"));
            }
        }
        lacks
    }

    fn compare(&self, learned: &[f64]) -> Result<Outcome> {
        let states = self.process.states();
        let exact = self.process.successor_distances(self.discount)?;
        let pairs = (0..states * states).map(|at| (at / states, at % states));
        let reached = pairs.filter(|&(s, g)| s != g && exact[(s, g)].is_finite());
        let reached = reached.collect::<Vec<_>>();
        let share = 1.0 / reached.len() as f64;
        let point = |&(s, g): &(usize, usize)| Point {
            share,
            exact: exact[(s, g)],
            learned: learned[s * states + g],
        };
        let points = reached.iter().map(point).collect();
        Ok(Outcome { points, worst_triangle: worst_triangle(learned, states) })
    }

    fn sample(&self, budget: &Budget, seed: u64) -> Result<Vec<Trajectory>> {
        let sampling = Sampling {
            start: Start::Uniform,
            trajectories: budget.trajectories,
            steps: STEPS,
            seed,
        };
        let random = Policy::uniform(self.process.states(), self.process.actions())?;
        Ok(sampling.sample(&self.process, &random)?)
    }

    /// Rows whose goal is a geometric number of steps ahead.
    fn write<B: Backend>(
        &self,
        data: &[Trajectory],
        batch: &Batch<B>,
        (seed, step): (u64, u64),
        rows: usize,
    ) -> Result<()> {
        let mut stream = Philox::new(seed).stream(step, BATCHES);
        let [mut state, mut next_state, mut goal, mut action] = [const { Vec::new() }; 4];
        let mut ahead = Vec::new();
        for _ in 0..rows {
            let trajectory = &data[below_u32(stream.next_u32(), data.len() as u32) as usize];
            let start = below_u32(stream.next_u32(), STEPS as u32) as usize;
            let steps = (1.0 - unit_f64(stream.next_u64())).ln() / self.discount.value().ln();
            let end = (start + 1 + steps as usize).min(STEPS);
            state.push(trajectory.states[start]);
            next_state.push(trajectory.states[start + 1]);
            let actions = self.process.actions() as u32;
            action.push(trajectory.states[start] * actions + trajectory.actions[start]);
            goal.push(trajectory.states[end]);
            ahead.push((end - start) as f32);
        }
        let states = self.process.states();
        let [state, next_state, goal] =
            [state, next_state, goal].map(|indices| one_hot(&indices, states));
        let action = one_hot(&action, states * self.process.actions());
        Ok(batch.write(
            0,
            &BatchValues {
                state: &state,
                action: &action,
                next_state: &next_state,
                goal: &goal,
                goal_action: &action,
                steps_to_goal: &ahead,
                actor_goals: &[],
            },
        )?)
    }
}

/// Actions of a trajectory.
const STEPS: usize = 60;

impl ControlledMethod {
    fn learner<B: Backend>(
        self,
        backend: &B,
        dimensions: &Dimensions,
        discount: Discount,
        learning_rate: f32,
    ) -> Result<Box<dyn Learner<B>>> {
        // Networks of one-hot inputs are tables of features.
        let network = MlpSettings { hidden: Vec::new(), ..Default::default() };
        let adam = AdamSettings { learning_rate, ..Default::default() };
        // The policy is not looked at.
        let mut policy = PolicySettings::ogbench();
        policy.network.hidden = vec![4];
        Ok(match self {
            Self::Tmd => {
                // What is learned by contrast is the behaviour's distance, so the invariances,
                // which turn it into the best policy's, weigh more. One MRN: the mean of several
                // has too few features each.
                let released = TmdSettings::released();
                let settings = TmdSettings {
                    head: Head::MRN,
                    latent: 64,
                    network,
                    adam,
                    discount: discount.value() as f32,
                    contrastive_divisor: 1.0,
                    action_invariance: 3.0,
                    temporal_invariance: 30.0,
                    own_goals: 0.0,
                    actor: ActorSettings { policy, ..released.actor.clone() },
                    ..released
                };
                Box::new(Tmd::new(backend, &settings, dimensions)?)
            }
            Self::Qrl => {
                let ogbench = QrlSettings::ogbench();
                let head = Head::Iqe { groups: 8, reduction: Reduction::MAX_MEAN };
                let settings = QrlSettings {
                    quasimetric: QuasimetricSettings {
                        head,
                        features: 64,
                        separate: false,
                        network,
                    },
                    transition: TransitionSettings::Features {
                        residual: MlpSettings { hidden: vec![16], ..Default::default() },
                    },
                    push_goals: PushGoals::Permuted,
                    push_offset: 15.0,
                    push_sharpness: 0.1,
                    margin: 0.01,
                    dual_optimiser: DualOptimiser::Adam(AdamSettings {
                        learning_rate: 0.01,
                        ..Default::default()
                    }),
                    adam,
                    actor: ActorSettings { policy, ..ogbench.actor.clone() },
                    ..ogbench
                };
                Box::new(Qrl::new(backend, &settings, dimensions)?)
            }
        })
    }
}
