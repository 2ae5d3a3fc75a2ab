//! Batches as a pure function of the data, the seed and the step number.

use std::sync::Arc;

use cm_random::{Philox, below_u64};

use crate::batch::{Batch, BatchMut, GoalRows};
use crate::draw::{ActorGoals, GoalSampler};
use crate::gather::gather;
use crate::goals::{End, Goals};
use crate::lags::Lags;
use crate::numbering::{Numbering, Place};
use crate::{Dataset, Result};

/// The stream whose block `b` draws row `b` of a batch: its first 64-bit word the transition, its
/// second the goal.
pub const TRANSITION_STREAM: u32 = 0x000;
/// The stream whose block `b` chooses, with its first word, which kind of goal row `b` gets.
pub const GOAL_KIND_STREAM: u32 = 0x001;
/// The stream whose block `b` draws the goal that a policy learns from in row `b`: its first word
/// the kind, its third and fourth, as one of 64 bits, the goal.
pub const ACTOR_GOAL_STREAM: u32 = 0x002;

/// Draws batches of transitions with goals.
///
/// Row `b` of the batch of step `t` depends on the data, the trajectories selected, the [`Goals`],
/// the seed, `t` and `b`, and on nothing else: not on earlier batches, not on the number of
/// threads, not on the batch's size. With `(x, y)` the two 64-bit words of Philox block
/// `(t, TRANSITION_STREAM, b)` and `z` the first 32-bit word of block `(t, GOAL_KIND_STREAM, b)`
/// ([`cm_random`] has the counter layout):
///
/// * the transition is number [`below_u64`]`(x, n)` of the `n` transitions of the selected
///   trajectories, counted in order;
/// * [`cm_random::unit_f32`]`(z)` below `random`, then below `random + uniform_future`, then below
///   `random + uniform_future + current` chooses the kind of goal;
/// * a random goal is step `below_u64(y, m)` of the `m` steps of the selected trajectories, a
///   uniform future goal is `i + 1 + below_u64(y, r)` with `r` the steps remaining after `i`, and a
///   geometric goal is [`crate::TruncatedGeometric::offset_at`]`(unit_f64(y))` ahead
///   ([`crate::End::BeforeLast`] has rules of its own, and [`crate::End::Balance`] draws the offset
///   by `y` before the transition by `x`);
/// * goals that policies learn from, if [`Goals::actor`] is set, are drawn in the same way from
///   block `(t, ACTOR_GOAL_STREAM, b)`.
///
/// ```
/// use std::sync::Arc;
/// use cm_replay::{Batch, Dataset, Goals, Matrix, Sampler};
///
/// let observations = Matrix::from_vec(100, 1, (0..100).map(|x| x as f32).collect())?;
/// let actions = Matrix::from_vec(100, 1, vec![1.0; 100])?;
/// let data = Arc::new(Dataset::new(observations, actions, vec![40, 100])?);
///
/// let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), 7)?;
/// let mut batch = Batch::new(&data, 32);
/// sampler.fill(1234, &mut batch)?;
/// for row in 0..32 {
///     assert_eq!(batch.next_observations[row], batch.observations[row] + 1.0);
///     assert!(batch.goals[row] > batch.observations[row]);
/// }
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    data: Arc<Dataset>,
    numbering: Numbering,
    goals: GoalSampler,
    /// If steps are drawn together with their goals.
    lags: Option<Lags>,
    philox: Philox,
}

impl Sampler {
    /// Draws from all trajectories.
    pub fn new(data: Arc<Dataset>, goals: Goals, seed: u64) -> Result<Self> {
        Self::with_selection(data, None, goals, seed)
    }

    /// Draws from the given trajectories only, such as one side of [`Dataset::split`].
    pub fn of_trajectories(
        data: Arc<Dataset>,
        trajectories: &[usize],
        goals: Goals,
        seed: u64,
    ) -> Result<Self> {
        Self::with_selection(data, Some(trajectories), goals, seed)
    }

    fn with_selection(
        data: Arc<Dataset>,
        trajectories: Option<&[usize]>,
        goals: Goals,
        seed: u64,
    ) -> Result<Self> {
        let numbering = Numbering::new(&data, trajectories)?;
        let rows = || match trajectories {
            Some(chosen) => chosen.to_vec(),
            None => (0..data.trajectories()).collect(),
        };
        let rows = || rows().into_iter().map(|trajectory| data.trajectory(trajectory));
        let balance = goals.end == End::Balance;
        let lags = balance.then(|| Lags::new(rows(), &goals)).transpose()?;
        let goals = GoalSampler::new(&goals, numbering.longest())?;
        Ok(Self { data, numbering, goals, lags, philox: Philox::new(seed) })
    }

    /// The data drawn from.
    pub fn data(&self) -> &Arc<Dataset> {
        &self.data
    }

    /// How many transitions a draw chooses among.
    pub fn transitions(&self) -> u64 {
        self.numbering.transitions()
    }

    /// Writes the batch of `step` into `batch`.
    pub fn fill(&self, step: u64, batch: &mut Batch) -> Result<()> {
        self.fill_buffers(step, batch.as_mut())
    }

    /// Writes the batch of `step` into the caller's buffers; large batches are shared among the
    /// threads of the current rayon pool (from 256 rows on inside a pool, from 1024 on outside).
    pub fn fill_buffers(&self, step: u64, batch: BatchMut) -> Result<()> {
        batch.check(&self.data)?;
        // Below this many rows, handing a part to another thread costs more than it saves; from
        // outside the pool it costs more.
        let least = if rayon::current_thread_index().is_some() { 128 } else { 512 };
        // Two parts to a thread: more would even out its delays, but move the buffers from one
        // core's cache to another's.
        let part = match rayon::current_num_threads() {
            1 => usize::MAX,
            threads => least.max(batch.steps.len() / (2 * threads)),
        };
        self.fill_parts(step, 0, batch, part);
        Ok(())
    }

    /// Which rows of the data a batch names: 2 columns (steps and goals), 3 if policies have goals
    /// of their own, 5 if there are subgoals too.
    pub fn columns(&self) -> usize {
        match (self.goals.has_actor(), self.goals.has_subgoals()) {
            (false, _) => 2,
            (true, false) => 3,
            (true, true) => 5,
        }
    }

    /// Buffers for `rows` draws, with every field that the settings draw.
    pub fn batch(&self, rows: usize) -> Batch {
        let mut batch = Batch::new(&self.data, rows);
        if self.goals.has_actor() {
            batch.actor = GoalRows::new(&self.data, rows);
        }
        if self.goals.has_subgoals() {
            batch.low = GoalRows::new(&self.data, rows);
            batch.high = GoalRows::new(&self.data, rows);
        }
        batch
    }

    /// Writes only which rows of the data the batch of `step` has, for those who gather elsewhere.
    ///
    /// In this order and as many as are given: the steps, the goals' steps, those of the goals for
    /// policies, of the low goals and of the high targets. As many rows as the shortest has.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cm_replay::{Batch, Dataset, Goals, Matrix, Sampler};
    /// # let numbers = || Matrix::from_vec(100, 1, vec![0.0; 100]);
    /// # let data = Arc::new(Dataset::new(numbers()?, numbers()?, vec![40, 100])?);
    /// let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), 7)?;
    /// let (mut steps, mut goals) = ([0; 45], [0; 45]);
    /// sampler.draw_rows(3, &mut [&mut steps, &mut goals]);
    /// let mut batch = Batch::new(&data, 45);
    /// sampler.fill(3, &mut batch)?;
    /// assert_eq!((&steps[..], &goals[..]), (&batch.steps[..], &batch.goal_steps[..]));
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn draw_rows(&self, step: u64, columns: &mut [&mut [usize]]) {
        let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for start in (0..rows).step_by(BLOCK) {
                    let drawn = self.draw(step, start as u32);
                    let count = BLOCK.min(rows - start);
                    let mut write = |at: usize, numbers: &[usize; BLOCK]| {
                        if let Some(column) = columns.get_mut(at) {
                            column[start..start + count].copy_from_slice(&numbers[..count]);
                        }
                    };
                    write(0, &drawn.steps);
                    write(1, &drawn.goals);
                    if self.columns() > 2 {
                        let actor = self.draw_actor(step, start as u32, &drawn.places);
                        write(2, &actor.goals);
                        write(3, &actor.low);
                        write(4, &actor.high);
                    }
                }
            },
        );
    }

    /// The same batch on the calling thread alone.
    pub(crate) fn fill_sequentially(&self, step: u64, batch: &mut Batch) -> Result<()> {
        let batch = batch.as_mut();
        batch.check(&self.data)?;
        self.fill_rows(step, 0, batch);
        Ok(())
    }

    /// Rows `first_row..` of the batch in parts of about `part` rows.
    fn fill_parts(&self, step: u64, first_row: usize, batch: BatchMut, part: usize) {
        let rows = batch.steps.len();
        if rows / 2 < part {
            return self.fill_rows(step, first_row, batch);
        }
        let (first, second) = batch.split_at(rows / 2);
        rayon::join(
            || self.fill_parts(step, first_row, first, part),
            || self.fill_parts(step, first_row + rows / 2, second, part),
        );
    }

    /// Rows `first_row..` of the batch, compiled for the processor it runs on.
    fn fill_rows(&self, step: u64, first_row: usize, batch: BatchMut) {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || self.fill_blocks(step, first_row, batch),
        );
    }

    /// Block after block: a block is drawn, and its data called into the cache while those of the
    /// block before, by now arrived, are copied.
    #[inline(always)]
    fn fill_blocks(&self, step: u64, first_row: usize, mut batch: BatchMut) {
        let rows = batch.steps.len();
        // One more round than there are blocks, with nothing left to draw.
        for start in (0..rows + BLOCK).step_by(BLOCK) {
            let drawn = start.min(rows)..rows.min(start + BLOCK);
            if !drawn.is_empty() {
                let first = (first_row + start) as u32;
                let Drawn { places, steps, goals } = self.draw(step, first);
                batch.steps[drawn.clone()].copy_from_slice(&steps[..drawn.len()]);
                batch.goal_steps[drawn.clone()].copy_from_slice(&goals[..drawn.len()]);
                if !(batch.actor.steps.is_empty() && batch.low.steps.is_empty()) {
                    let ActorGoals { goals, low, high } = self.draw_actor(step, first, &places);
                    batch.actor.write(drawn.clone(), &goals);
                    batch.low.write(drawn.clone(), &low);
                    batch.high.write(drawn.clone(), &high);
                }
            }
            gather(&self.data, &mut batch, start.saturating_sub(BLOCK)..start.min(rows), drawn);
        }
    }

    /// The steps and the goals' steps of a block of rows.
    #[inline(always)]
    fn draw(&self, step: u64, first_row: u32) -> Drawn {
        let words = |stream| self.philox.blocks::<BLOCK>(step, stream, first_row);
        let [low, high, goal_low, goal_high] = words(TRANSITION_STREAM);
        let (mut places, mut goal_words) = ([Place::default(); BLOCK], [0; BLOCK]);
        for at in 0..BLOCK {
            let number = below_u64(wide(low[at], high[at]), self.numbering.transitions());
            places[at] = self.numbering.transition(number);
            goal_words[at] = wide(goal_low[at], goal_high[at]);
        }
        let mut goals = match &self.lags {
            None => self.goals.geometric(&places, &goal_words),
            Some(lags) => {
                let mut goals = [0; BLOCK];
                for at in 0..BLOCK {
                    (places[at], goals[at]) = lags.draw(wide(low[at], high[at]), goal_words[at]);
                }
                goals
            }
        };
        if self.goals.is_mixture() {
            let kinds = words(GOAL_KIND_STREAM)[0];
            self.goals.replace(&self.numbering, &places, &kinds, &goal_words, &mut goals);
        }
        let mut steps = [0; BLOCK];
        for at in 0..BLOCK {
            steps[at] = places[at].step;
        }
        Drawn { places, steps, goals }
    }

    /// The goals for policies of the same rows.
    fn draw_actor(&self, step: u64, first_row: u32, places: &[Place; BLOCK]) -> ActorGoals<BLOCK> {
        let [kinds, _, low, high] = self.philox.blocks::<BLOCK>(step, ACTOR_GOAL_STREAM, first_row);
        let words = std::array::from_fn(|at| wide(low[at], high[at]));
        self.goals.actor(&self.numbering, places, &kinds, &words)
    }
}

/// A block of rows.
struct Drawn {
    places: [Place; BLOCK],
    steps: [usize; BLOCK],
    goals: [usize; BLOCK],
}

/// Rows drawn at a time.
const BLOCK: usize = 32;

#[inline]
fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
