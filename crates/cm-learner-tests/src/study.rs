//! Processes whose successor distance is known exactly, trajectories of them, and learners trained
//! on these.

use cm_contrastive::{Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings};
use cm_envs::tabular::{
    ControlledProcess, Discount, Grid, GridRules, MarkovChain, Policy, Sampling, Start, Trajectory,
};
use cm_learner::{Batch, BatchValues, Dimensions, Group, Learner, Transitions, Update};
use cm_nn::{AdamSettings, Backend, MlpSettings, QuasimetricSettings, Var};
use cm_policy::ActorSettings;
use cm_random::{Philox, below_u32, unit_f64};
use rand_core::Rng;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The stream that batches are drawn from.
const BATCHES: u32 = 0x300;

/// What the process does under its behaviour policy, and a discount. Learners see states only: the
/// action is always the same.
pub struct Study {
    /// What it is called.
    pub name: &'static str,
    chain: MarkovChain,
    discount: Discount,
}

/// A stochastic chain, a slippery grid with a one-way door, a random process.
pub fn studies() -> Result<Vec<Study>> {
    // Forward with probability 0.6, back with 0.25, else stay; the ends reflect.
    let chain = MarkovChain::from_fn(12, |state| {
        let [back, ahead] = [state.saturating_sub(1), (state + 1).min(11)];
        [(back, 0.25), (state, 0.15), (ahead, 0.6)]
    })?;
    // The door in the middle lets pass to the right only; the behaviour drifts to the right and up.
    let rules = GridRules { slip: 0.3, ..Default::default() };
    let grid = Grid::parse(
        "
        ~~~#~~~
        ~~~>~~~
        ~~~#~~~
        ~~~~~~~
        ",
        &rules,
    )?;
    let grid = grid.process();
    let drift = Policy::from_dense(5, &[0.3, 0.35, 0.1, 0.15, 0.1].repeat(grid.states()))?;
    let grid = grid.under(&drift)?;
    // Every state leads to three random ones, with random probabilities of very different sizes.
    let philox = Philox::new(5);
    let random = MarkovChain::from_fn(15, |state| {
        let mut stream = philox.stream(state as u64, BATCHES);
        let mut draw =
            || (below_u32(stream.next_u32(), 15) as usize, unit_f64(stream.next_u64()).powi(2));
        let drawn = [draw(), draw(), draw()];
        let total = drawn.iter().map(|(_, weight)| weight).sum::<f64>();
        drawn.map(|(next, weight)| (next, weight / total))
    })?;
    let study =
        |name, chain| -> Result<Study> { Ok(Study { name, chain, discount: Discount::new(0.8)? }) };
    Ok(vec![
        study("stochastic chain", chain)?,
        study("slippery one-way grid", grid)?,
        study("random process", random)?,
    ])
}

/// How much data and training.
#[derive(Clone, Copy)]
pub struct Budget {
    /// Trajectories.
    pub trajectories: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Training steps.
    pub steps: usize,
}

/// Enough for every criterion, in seconds.
pub const SMALL: Budget = Budget { trajectories: 4000, batch: 128, steps: 1500 };

/// Which learner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// CMD-1.
    Cmd1,
    /// CMD-2.
    Cmd2,
    /// Contrastive RL, with minus its critic for a distance.
    RawCritic,
}

impl Method {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Cmd1, Self::Cmd2, Self::RawCritic];
}

/// One pair of different states that occurs in the data.
pub struct Point {
    /// How often the pair is drawn, as a share of all pairs of different states.
    pub share: f64,
    /// The exact successor distance.
    pub exact: f64,
    /// The learned one.
    pub learned: f64,
}

/// What a method learned of a study.
pub struct Outcome {
    /// Pairs of different states.
    pub points: Vec<Point>,
    /// The largest `d(x, z) - d(x, y) - d(y, z)` over all triples of states.
    pub worst_triangle: f64,
}

impl Study {
    /// Trains `method` on trajectories of the process and compares what it learned with the truth.
    pub fn run<B: Backend>(
        &self,
        backend: &B,
        method: Method,
        budget: &Budget,
        seed: u64,
        mut progress: impl FnMut(usize),
    ) -> Result<Outcome> {
        let data = Data::sample(self, budget, seed)?;
        let states = self.chain.states();
        let dimensions = Dimensions::new(states, 1, 0..states)?;
        let learner = method.learner(backend, &dimensions)?;
        let batch = Batch::new(backend, budget.batch, &dimensions)?;
        let mut captured = backend.capture(|| learner.step(&batch.load()?));
        for step in 0..budget.steps {
            data.write(&batch, step as u64, budget.batch)?;
            captured.run()?;
            progress(step + 1);
        }
        let learned = all_distances(&*learner, backend, states)?;
        let exact = self.chain.successor_distances(self.discount)?;
        let shares = data.shares();
        let pairs = (0..states * states).map(|at| (at / states, at % states));
        let points = pairs.filter_map(|(start, goal)| {
            let at = start * states + goal;
            let point =
                Point { share: shares[at], exact: exact[(start, goal)], learned: learned[at] };
            (start != goal && point.share > 0.0).then_some(point)
        });
        let points = points.collect();
        Ok(Outcome { points, worst_triangle: worst_triangle(&learned, states) })
    }
}

impl Method {
    fn learner<B: Backend>(
        self,
        backend: &B,
        dimensions: &Dimensions,
    ) -> Result<Box<dyn Learner<B>>> {
        // Encoders of one-hot inputs are tables of features; the policy is not looked at.
        let table = MlpSettings { hidden: Vec::new(), ..Default::default() };
        let adam = AdamSettings { learning_rate: 3e-3, ..Default::default() };
        let mut actor = ActorSettings::paper_text();
        actor.policy.network.hidden = vec![4];
        let quasimetric = QuasimetricSettings {
            features: 64,
            network: MlpSettings { hidden: vec![64], ..Default::default() },
            ..Default::default()
        };
        let mut crl = CrlSettings { adam, actor, ..CrlSettings::paper_text() };
        crl.critic.network = table;
        Ok(match self {
            Self::Cmd1 => {
                let actor = crl.actor;
                let settings =
                    Cmd1Settings { quasimetric, adam, actor, ..Cmd1Settings::paper_text() };
                Box::new(Cmd1::new(backend, &settings, dimensions)?)
            }
            Self::Cmd2 => {
                let settings = Cmd2Settings {
                    critic: crl.critic,
                    critic_adam: adam,
                    quasimetric,
                    quasimetric_adam: adam,
                    margin: 0.01,
                    actor: crl.actor,
                    ..Cmd2Settings::paper_text()
                };
                Box::new(Cmd2::new(backend, &settings, dimensions)?)
            }
            Self::RawCritic => Box::new(RawCritic(Crl::new(backend, &crl, dimensions)?)),
        })
    }
}

/// Contrastive RL whose distance is minus its critic, without the change of variables.
struct RawCritic<B: Backend>(Crl<B>);

impl<B: Backend> Learner<B> for RawCritic<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> cm_nn::Result<()> {
        self.0.losses(batch, update)
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> cm_nn::Result<Var<B>> {
        self.0.act(state, goal)
    }

    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> cm_nn::Result<Option<Var<B>>> {
        let critic = self.0.critic();
        critic.rows(&critic.phi(state, action)?, &critic.psi(goal)?)?.neg().map(Some)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        self.0.groups()
    }

    fn dimensions(&self) -> &Dimensions {
        self.0.dimensions()
    }
}

/// Trajectories, whose steps but the last have enough future behind them.
struct Data {
    trajectories: Vec<Trajectory>,
    states: usize,
    discount: f64,
    seed: u64,
}

impl Data {
    /// Goals lie less than this many steps ahead; the rest has probability 1e-6 at discount 0.8.
    const HORIZON: usize = 62;
    /// Steps of each trajectory that batches start from.
    const STARTS: usize = 40;

    fn sample(study: &Study, budget: &Budget, seed: u64) -> Result<Self> {
        let sampling = Sampling {
            start: Start::Uniform,
            trajectories: budget.trajectories,
            steps: Self::STARTS + Self::HORIZON,
            seed,
        };
        let states = study.chain.states();
        let process = ControlledProcess::from(study.chain.clone());
        let trajectories = sampling.sample(&process, &Policy::uniform(states, 1)?)?;
        Ok(Self { trajectories, states, discount: study.discount.value(), seed })
    }

    /// Rows whose goal is a geometric number of steps ahead, 0 included as in Eq. 2.
    fn write<B: Backend>(&self, batch: &Batch<B>, step: u64, rows: usize) -> Result<()> {
        let mut stream = Philox::new(self.seed).stream(step, BATCHES);
        let [mut state, mut next_state, mut goal] = [Vec::new(), Vec::new(), Vec::new()];
        let mut ahead = Vec::new();
        for _ in 0..rows {
            let trajectory = below_u32(stream.next_u32(), self.trajectories.len() as u32);
            let states = &self.trajectories[trajectory as usize].states;
            let start = below_u32(stream.next_u32(), Self::STARTS as u32) as usize;
            let steps = (1.0 - unit_f64(stream.next_u64())).ln() / self.discount.ln();
            let steps = (steps as usize).min(Self::HORIZON - 1);
            state.push(states[start]);
            next_state.push(states[start + 1]);
            goal.push(states[start + steps]);
            ahead.push(steps as f32);
        }
        let [state, next_state, goal] =
            [state, next_state, goal].map(|indices| one_hot(&indices, self.states));
        let action = vec![0.0; rows];
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

    /// How often each pair of different states is drawn, at `start * states + goal`; together 1.
    fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.states * self.states];
        for trajectory in &self.trajectories {
            for start in 0..Self::STARTS {
                let state = trajectory.states[start];
                let mut weight = 1.0;
                for &goal in &trajectory.states[start..start + Self::HORIZON] {
                    if goal != state {
                        shares[state as usize * self.states + goal as usize] += weight;
                    }
                    weight *= self.discount;
                }
            }
        }
        let total = shares.iter().sum::<f64>();
        shares.iter().map(|share| share / total).collect()
    }
}

pub(crate) fn one_hot(indices: &[u32], size: usize) -> Vec<f32> {
    let mut values = vec![0.0; indices.len() * size];
    for (row, &index) in indices.iter().enumerate() {
        values[row * size + index as usize] = 1.0;
    }
    values
}

/// Learned distances of all pairs of states, at `start * states + goal`.
fn all_distances<B: Backend>(
    learner: &dyn Learner<B>,
    backend: &B,
    states: usize,
) -> Result<Vec<f64>> {
    let rows = (states * states) as u32;
    let start = (0..rows).map(|row| row / states as u32).collect::<Vec<_>>();
    let goal = (0..rows).map(|row| row % states as u32).collect::<Vec<_>>();
    let [start, goal] = [start, goal]
        .map(|indices| Var::new(backend, [indices.len(), states], one_hot(&indices, states)));
    let action = Var::full(backend, [states * states, 1], 0.0)?;
    let distances = learner.distance(&start?, &action, &goal?, &action)?;
    let distances = distances.ok_or("the method learns no distance")?;
    Ok(distances.to_vec()?.into_iter().map(f64::from).collect())
}

pub(crate) fn worst_triangle(distances: &[f64], states: usize) -> f64 {
    let d = |x: usize, y: usize| distances[x * states + y];
    let mut worst = f64::NEG_INFINITY;
    for x in 0..states {
        for y in 0..states {
            for z in 0..states {
                worst = worst.max(d(x, z) - d(x, y) - d(y, z));
            }
        }
    }
    worst
}

impl Outcome {
    /// What this outcome of CMD lacks; `raw` is that of the raw critic.
    pub fn failures(&self, raw: &Self) -> Vec<String> {
        let (rank, error) = (self.rank_correlation(), self.mean_error());
        let criteria = [
            (rank >= 0.95, format!("rank correlation {rank:.4} is below 0.95")),
            (error <= 0.25, format!("mean error {error:.3} is above 0.25")),
            (
                rank > raw.rank_correlation(),
                format!("rank correlation {rank:.4} is not above the raw critic's"),
            ),
            (
                error < raw.mean_error(),
                format!("mean error {error:.3} is not below the raw critic's"),
            ),
            // Rounding of single precision, at distances of about ten.
            (
                self.worst_triangle <= 1e-5,
                format!("a triangle is violated by {:e}", self.worst_triangle),
            ),
        ];
        criteria.into_iter().filter(|(holds, _)| !holds).map(|(_, failure)| failure).collect()
    }

    /// Spearman's rank correlation of learned and exact distances.
    pub fn rank_correlation(&self) -> f64 {
        let ranks = |of: &dyn Fn(&Point) -> f64| {
            let values = self.points.iter().map(of).collect::<Vec<_>>();
            let mut order = (0..values.len()).collect::<Vec<_>>();
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            let mut ranks = vec![0.0; values.len()];
            for (rank, &index) in order.iter().enumerate() {
                ranks[index] = rank as f64;
            }
            ranks
        };
        let (x, y) = (ranks(&|point| point.exact), ranks(&|point| point.learned));
        let middle = (x.len() as f64 - 1.0) / 2.0;
        let product = |x: &[f64], y: &[f64]| {
            x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>()
        };
        product(&x, &y) / product(&x, &x)
    }

    /// Mean absolute difference of learned and exact distances over the pairs as they are drawn
    /// from the data.
    pub fn mean_error(&self) -> f64 {
        let error = |point: &Point| point.share * (point.learned - point.exact).abs();
        self.points.iter().map(error).sum()
    }
}
