//! Batches drawn ahead of time on other threads.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::{Batch, Error, Result, Sampler};

/// Worker threads that draw the batches of consecutive steps while the caller uses earlier ones.
///
/// The batches are those [`Sampler::fill`] gives, in order; worker `w` of `n` draws every `n`-th.
/// Buffers go round between the caller and the workers, so nothing is allocated after the start.
///
/// ```
/// use std::sync::Arc;
/// use cm_replay::{Batch, Dataset, Goals, Matrix, Prefetcher, Sampler};
///
/// let numbers = Matrix::from_vec(50, 1, (0..50).map(|x| x as f32).collect())?;
/// let data = Arc::new(Dataset::new(numbers.clone(), numbers, vec![50])?);
/// let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), 7)?;
///
/// let mut prefetcher = Prefetcher::new(&sampler, 8, 100, 1)?;
/// let (mut batch, mut expected) = (Batch::new(&data, 8), Batch::new(&data, 8));
/// for step in 100..110 {
///     assert_eq!(prefetcher.next(&mut batch), step);
///     sampler.fill(step, &mut expected)?;
///     assert_eq!(batch, expected);
/// }
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Debug)]
pub struct Prefetcher {
    workers: Vec<Worker>,
    first_step: u64,
    step: u64,
}

#[derive(Debug)]
struct Worker {
    filled: Receiver<Batch>,
    /// Taken when the worker is to end.
    empty: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

/// Batches a worker may be ahead by.
const DEPTH: usize = 4;

impl Prefetcher {
    /// Starts `workers` threads that draw batches of `rows` rows from step `first_step` on.
    pub fn new(sampler: &Sampler, rows: usize, first_step: u64, workers: usize) -> Result<Self> {
        Self::with_finish(sampler, rows, first_step, workers, |_, _| ())
    }

    /// The same, with `finish(step, batch)` called on every batch by the thread that drew it:
    /// noise, scaling and the like, which the caller then need not wait for.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use cm_replay::{Batch, Dataset, Goals, Matrix, Prefetcher, Sampler};
    /// # let numbers = Matrix::from_vec(50, 1, (0..50).map(|x| x as f32).collect())?;
    /// # let data = Arc::new(Dataset::new(numbers.clone(), numbers, vec![50])?);
    /// # let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), 7)?;
    /// let mut prefetcher = Prefetcher::with_finish(&sampler, 8, 0, 1, |step, batch| {
    ///     batch.actions.fill(step as f32);
    /// })?;
    /// let mut batch = Batch::default();
    /// prefetcher.next(&mut batch);
    /// prefetcher.next(&mut batch);
    /// assert_eq!(batch.actions, [1.0; 8]);
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn with_finish(
        sampler: &Sampler,
        rows: usize,
        first_step: u64,
        workers: usize,
        finish: impl Fn(u64, &mut Batch) + Clone + Send + 'static,
    ) -> Result<Self> {
        if workers == 0 {
            let found = "0".to_owned();
            return Err(Error::Parameter { name: "workers", expected: "at least 1", found });
        }
        let workers = (0..workers as u64)
            .map(|worker| {
                let steps = (first_step + worker..).step_by(workers);
                Worker::start(sampler.clone(), rows, steps, finish.clone())
            })
            .collect::<Result<_>>()?;
        Ok(Self { workers, first_step, step: first_step })
    }

    /// Puts the next batch into `batch`, whose buffers serve for a later one, and says which step's
    /// it is.
    ///
    /// Buffers of another size than the batch's are replaced, so [`Batch::default`] will do to
    /// start with.
    pub fn next(&mut self, batch: &mut Batch) -> u64 {
        let step = self.step;
        self.step += 1;
        let worker = (step - self.first_step) % self.workers.len() as u64;
        self.workers[worker as usize].exchange(batch);
        step
    }
}

impl Worker {
    fn start(
        sampler: Sampler,
        rows: usize,
        mut steps: impl Iterator<Item = u64> + Send + 'static,
        finish: impl Fn(u64, &mut Batch) + Send + 'static,
    ) -> Result<Self> {
        let (give_filled, filled) = sync_channel(DEPTH);
        let (empty, take_empty) = sync_channel::<Batch>(DEPTH + 1);
        let work = move || {
            let mut spare: Vec<_> = (0..DEPTH).map(|_| sampler.batch(rows)).collect();
            // Ends when either channel's other side is gone.
            while let Some(mut batch) = spare.pop().or_else(|| take_empty.recv().ok())
                && let Some(step) = steps.next()
            {
                if !batch.has_columns(rows, sampler.columns())
                    || sampler.fill_sequentially(step, &mut batch).is_err()
                {
                    batch = sampler.batch(rows);
                    sampler.fill_sequentially(step, &mut batch).expect("the buffers fit");
                }
                finish(step, &mut batch);
                if give_filled.send(batch).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("cm-replay prefetch".to_owned())
            .spawn(work)
            .map_err(Error::io("start a prefetching thread"))?;
        Ok(Self { filled, empty: Some(empty), thread: Some(thread) })
    }

    fn exchange(&mut self, batch: &mut Batch) {
        let Ok(next) = self.filled.recv() else {
            // The worker ends early only by a panic, which belongs to the caller too.
            match self.thread.take().map(JoinHandle::join) {
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                _ => unreachable!("a prefetching thread ended while it was needed"),
            }
        };
        let used = std::mem::replace(batch, next);
        if let Some(empty) = &self.empty {
            // Fails only if the worker is gone, which the next exchange reports.
            let _ = empty.send(used);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.empty = None;
        // Unblocks a worker that waits to hand over a batch.
        while self.filled.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
