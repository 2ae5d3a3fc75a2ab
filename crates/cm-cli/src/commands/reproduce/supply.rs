//! Data sets that are made beside training: the first runs begin while the data of later ones is
//! not there yet.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::bail;
use cm_train::Job;

/// How often somebody who waits looks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// The data of tasks, which a thread makes one after another.
pub(super) struct Supply {
    tasks: Vec<String>,
    made: Arc<Made>,
    maker: JoinHandle<()>,
}

/// What became of each task's data so far: whether it is there, or why it is not.
#[derive(Default)]
struct Made {
    known: Mutex<BTreeMap<String, Result<(), String>>>,
    news: Condvar,
}

impl Supply {
    /// Begins to `make` the data of the tasks for which it is not there; one that fails does not
    /// stop the others. The thread may be cut off by the program's end: what it makes must be able
    /// to go on from half of it.
    pub(super) fn begin<T: Copy + Display + Send + 'static>(
        tasks: &[T],
        is_there: impl Fn(T) -> anyhow::Result<bool>,
        make: impl Fn(T) -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let mut missing = Vec::new();
        for &task in tasks {
            if !is_there(task)? {
                missing.push(task);
            }
        }
        let tasks = missing.iter().map(T::to_string).collect();
        let made = Arc::new(Made::default());
        let here = made.clone();
        let maker = std::thread::Builder::new().name("data".to_owned()).spawn(move || {
            for task in missing {
                let result = make(task).map_err(|error| format!("{error:#}"));
                here.known().insert(task.to_string(), result);
                here.news.notify_all();
            }
        })?;
        Ok(Self { tasks, made, maker })
    }

    /// Waits for a job's data; that of tasks which nobody makes is there already. Gives up when
    /// `stop` is set.
    pub(super) fn wait(&self, job: &Job, stop: &AtomicBool) -> anyhow::Result<()> {
        let task = job.settings.task.describe();
        if !self.tasks.contains(&task) {
            return Ok(());
        }
        let mut known = self.made.known();
        loop {
            match known.get(&task) {
                Some(Ok(())) => return Ok(()),
                Some(Err(reason)) => bail!("{reason}"),
                None if stop.load(Ordering::Relaxed) => bail!("interrupted"),
                // Only a panic, which has said why, ends it before the last is known.
                None if self.maker.is_finished() => bail!("the data of {task} was not made"),
                None => {
                    let waited = self.made.news.wait_timeout(known, LOOK);
                    known = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

impl Made {
    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Result<(), String>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use cm_train::{AntMazeTask, Method, RunSettings};

    use super::*;

    fn job(task: &str) -> Job {
        let of_task = AntMazeTask { task: task.into(), file: "a.cmdata".into(), scale: false };
        Job { settings: RunSettings::ant_maze(Method::Gcbc, of_task), folder: task.into() }
    }

    #[test]
    fn jobs_wait_for_their_own_data_alone() {
        let (go_on, told) = channel::<()>();
        let tasks = ["there already", "first", "broken", "last"];
        let make = move |task: &str| {
            assert_ne!(task, "there already");
            if task == "last" {
                told.recv()?;
            }
            if task == "broken" { bail!("no room") } else { Ok(()) }
        };
        let refused = Supply::begin(&tasks, |_| bail!("another recipe"), |_| Ok(()));
        assert_eq!(refused.err().unwrap().to_string(), "another recipe");
        let supply = Supply::begin(&tasks, |task| Ok(task == "there already"), make).unwrap();
        let stop = AtomicBool::new(false);
        supply.wait(&job("first"), &stop).unwrap();
        supply.wait(&job("there already"), &stop).unwrap();
        let error = supply.wait(&job("broken"), &stop).unwrap_err().to_string();
        assert_eq!(error, "no room");
        stop.store(true, Ordering::Relaxed);
        let error = supply.wait(&job("last"), &stop).unwrap_err().to_string();
        assert_eq!(error, "interrupted");
        stop.store(false, Ordering::Relaxed);
        go_on.send(()).unwrap();
        supply.wait(&job("last"), &stop).unwrap();
    }

    #[test]
    fn nobody_waits_for_data_that_a_panic_left_unmade() {
        let make = |_: &str| -> anyhow::Result<()> { panic!("on purpose") };
        let supply = Supply::begin(&["first", "last"], |_| Ok(false), make).unwrap();
        for task in ["first", "last"] {
            let error = supply.wait(&job(task), &AtomicBool::new(false)).unwrap_err().to_string();
            assert!(error.contains("was not made"), "{error}");
        }
    }
}
