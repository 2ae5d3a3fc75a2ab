//! Many runs, as many at once as there are workers.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::training::together;
use crate::{
    Device, Error, Event, Replica, Report, Result, RunFolder, RunSettings, Task, TaskSettings,
};

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

/// Does the jobs in their order, `workers` at a time; workers that are left over help with the
/// others' matrices and episodes. Jobs that a device can train at once, because they differ in
/// seeds and data alone, are one piece of work there. A job that fails does not stop the others;
/// the results are in the jobs' order, `None` for a job that `stop` kept from beginning.
///
/// Small networks gain little from a second thread, so runs side by side finish sooner than one
/// after another. No result depends on the number of workers.
pub fn run_jobs(
    device: Device,
    jobs: &[Job],
    workers: usize,
    stop: &AtomicBool,
    watch: impl Fn(usize, JobEvent<'_>) + Sync,
) -> Result<Vec<Option<Result<Report>>>> {
    let groups = job_groups(jobs, device.most_replicas());
    let waiting: Mutex<VecDeque<Vec<usize>>> = Mutex::new(groups.into());
    let results: Mutex<Vec<Option<Result<Report>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    let pieces = waiting.lock().map_or(0, |waiting| waiting.len()).max(1);
    let threads = (workers / pieces).max(1);
    let next = || match stop.load(Ordering::Relaxed) {
        true => None,
        false => waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
    };
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let pool = pool(threads)?;
            while let Some(group) = next() {
                let watch_run = |at: usize, event| watch(group[at], JobEvent::Run(event));
                let ended = pool.install(|| run(device, jobs, &group, stop, watch_run));
                for (&index, result) in group.iter().zip(ended) {
                    watch(index, JobEvent::Ended(&result));
                    results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
                }
            }
            Ok(())
        };
        let running: Vec<_> = (0..workers.clamp(1, pieces)).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Jobs that a device with replicas can train at once, by their numbers: at most `most`, differing
/// in seeds and data alone.
///
/// ```
/// use cm_train::{Job, Method, RunSettings, job_groups};
///
/// let job = |method, seed| {
///     let settings = RunSettings::tiny_plane(method, seed);
///     Job { settings, folder: format!("{method}-{seed}").into() }
/// };
/// let jobs = [job(Method::Cmd1, 0), job(Method::Gcbc, 0), job(Method::Cmd1, 1)];
/// assert_eq!(job_groups(&jobs, None), [vec![0, 2], vec![1]]);
/// assert_eq!(job_groups(&jobs, Some(1)), [[0], [1], [2]]);
/// ```
pub fn job_groups(jobs: &[Job], most: Option<usize>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let fits = |group: &&mut Vec<usize>| {
            most.is_none_or(|most| group.len() < most)
                && together(&jobs[group[0]].settings, &job.settings)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// One piece of work: a result for each of the group's jobs.
fn run(
    device: Device,
    jobs: &[Job],
    group: &[usize],
    stop: &AtomicBool,
    watch: impl FnMut(usize, Event),
) -> Vec<Result<Report>> {
    match train_group(device, jobs, group, stop, watch) {
        Ok(results) => results,
        // What ended all of them is said of each.
        Err(error) => {
            let rest = group.iter().skip(1).map(|_| Err(Error::Together(error.to_string())));
            let rest = rest.collect::<Vec<_>>();
            std::iter::once(Err(error)).chain(rest).collect()
        }
    }
}

fn train_group(
    device: Device,
    jobs: &[Job],
    group: &[usize],
    stop: &AtomicBool,
    watch: impl FnMut(usize, Event),
) -> Result<Vec<Result<Report>>> {
    let jobs = group.iter().map(|&index| &jobs[index]).collect::<Vec<_>>();
    // Runs of one task share its data, here and on the device.
    let mut opened = Vec::<(&TaskSettings, Task)>::new();
    let mut places = Vec::new();
    for job in &jobs {
        let task = &job.settings.task;
        let known = opened.iter().position(|(other, _)| *other == task);
        places.push(known.unwrap_or(opened.len()));
        if known.is_none() {
            opened.push((task, task.open()?));
        }
    }
    let folders = jobs.iter().map(|job| RunFolder::new(&job.folder)).collect::<Vec<_>>();
    let replicas = jobs.iter().zip(places).zip(&folders).map(|((job, place), folder)| {
        let (settings, task) = (&job.settings, &opened[place].1);
        Replica { settings, task, folder }
    });
    device.train(&replicas.collect::<Vec<_>>(), stop, watch)
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    // Work goes to the pool's threads by `install`.
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| Error::Setting {
        setting: "workers".to_owned(),
        expected: "threads that the system can start",
        found: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    #[test]
    fn jobs_that_differ_in_seeds_alone_are_trained_at_once() {
        let job = |method, seed, batch| {
            let settings = RunSettings { seed, batch, ..RunSettings::plane(method) };
            Job { settings, folder: PathBuf::from(format!("{method}-{seed}-{batch}")) }
        };
        let (a, b) = (Method::Cmd1, Method::Gcbc);
        let jobs = [job(a, 0, 8), job(b, 0, 8), job(a, 1, 8), job(a, 2, 8), job(a, 3, 16)];
        assert_eq!(job_groups(&jobs, None), [vec![0, 2, 3], vec![1], vec![4]]);
        assert_eq!(job_groups(&jobs, Some(2)), [vec![0, 2], vec![1], vec![3], vec![4]]);
        assert_eq!(job_groups(&jobs, Some(1)).len(), 5);
    }
}
