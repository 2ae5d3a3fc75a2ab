//! Several runs at once, each on a thread of its own.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cm_nn::DfdxBackend;

use crate::{Error, Event, Report, Result, RunFolder, RunSettings, train};

/// A run to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its settings.
    pub settings: RunSettings,
    /// Its folder.
    pub folder: PathBuf,
}

/// What happens in one of several runs.
#[derive(Debug)]
pub enum JobEvent<'a> {
    /// Something happened in it.
    Run(Event),
    /// It ended.
    Ended(&'a Result<Report>),
}

/// Does the jobs, `workers` at a time and each on one thread, in their order; workers that are left over help with the others' matrices and episodes. A job that fails does not stop the others; the results are in the jobs' order, `None` for a job that `stop` kept from beginning.
///
/// Small networks gain little from a second thread, so runs side by side finish sooner than one after another. No result depends on the number of workers.
pub fn run_jobs(
    jobs: &[Job],
    workers: usize,
    stop: &AtomicBool,
    watch: impl Fn(usize, JobEvent<'_>) + Sync,
) -> Result<Vec<Option<Result<Report>>>> {
    let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..jobs.len()).collect());
    let results: Mutex<Vec<Option<Result<Report>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    let threads = (workers / jobs.len().max(1)).max(1);
    let next = || match stop.load(Ordering::Relaxed) {
        true => None,
        false => waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
    };
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let pool = pool(threads)?;
            while let Some(index) = next() {
                let result = pool.install(|| {
                    run(&jobs[index], stop, |event| watch(index, JobEvent::Run(event)))
                });
                watch(index, JobEvent::Ended(&result));
                results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
            }
            Ok(())
        };
        let running: Vec<_> =
            (0..workers.clamp(1, jobs.len().max(1))).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn run(job: &Job, stop: &AtomicBool, watch: impl FnMut(Event)) -> Result<Report> {
    let task = job.settings.task.open()?;
    let backend = DfdxBackend::new(job.settings.seed);
    train(&backend, &job.settings, &task, &RunFolder::new(&job.folder), stop, watch)
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    // Work goes to the pool's threads by `install`.
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| Error::Setting {
        setting: "workers",
        expected: "threads that the system can start",
        found: error.to_string(),
    })
}
