//! The loop: sample, step, record, evaluate, checkpoint.

mod cohort;
mod evaluation;
mod report;
mod run;
mod writing;

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use cm_learner::BatchSource;
use cm_nn::Backend;

use self::cohort::Cohort;
pub use self::report::{Event, Report, Timings};
use self::run::Run;
use crate::batches::HostBatches;
use crate::{Device, Error, Result, RunFolder, RunSettings, Task};

/// One of several runs that are trained at once.
#[derive(Clone, Copy, Debug)]
pub struct Replica<'a> {
    /// Its settings. Replicas have the same batch size, steps and method, and record, evaluate and
    /// checkpoint at the same steps; seeds, data and goals may differ.
    pub settings: &'a RunSettings,
    /// Its data, and where its policy acts.
    pub task: &'a Task,
    /// Its folder.
    pub folder: &'a RunFolder,
}

/// Trains every replica in its own folder until the steps are done or `stop` is set, at once on
/// backends that `make` makes of their seeds. Each goes on from its folder's checkpoint if there is
/// one, and ends with one.
///
/// A replica gives the numbers that it would give alone. One that fails (a folder that somebody else
/// trains in, a loss or a weight that stops being finite, a disk that is full) is reported in its
/// place and does not end the others.
/// Replicas that were stopped at different steps are brought to the same step first. The outer
/// error is about all of them: settings that do not belong together, or a device that fails.
pub fn train_on<B: Backend>(
    make: impl Fn(&[u64]) -> cm_nn::Result<B>,
    replicas: &[Replica<'_>],
    stop: &AtomicBool,
    watch: impl FnMut(usize, Event),
) -> Result<Vec<Result<Report>>> {
    train_with(&Make(make), None, replicas, stop, watch)
}

/// What runs are trained with.
pub(crate) trait Setup {
    type Backend: Backend;

    /// A backend with a replica for each of the seeds.
    fn backend(&self, seeds: &[u64]) -> cm_nn::Result<Self::Backend>;

    /// The batches of the runs from `step` on, one replica for each.
    fn batches(
        &self,
        backend: &Self::Backend,
        runs: Vec<(&RunSettings, &Task)>,
        step: u64,
    ) -> Result<Rc<dyn BatchSource<Self::Backend>>> {
        Ok(Rc::new(HostBatches::new(backend, runs, step)?))
    }
}

/// Backends made by a function, and batches drawn on the host.
pub(crate) struct Make<F>(pub(crate) F);

impl<B: Backend, F: Fn(&[u64]) -> cm_nn::Result<B>> Setup for Make<F> {
    type Backend = B;

    fn backend(&self, seeds: &[u64]) -> cm_nn::Result<B> {
        (self.0)(seeds)
    }
}

/// [`train_on`] with any setup; the device is noted in the folders.
pub(crate) fn train_with<S: Setup>(
    setup: &S,
    device: Option<Device>,
    replicas: &[Replica<'_>],
    stop: &AtomicBool,
    mut watch: impl FnMut(usize, Event),
) -> Result<Vec<Result<Report>>> {
    check_together(replicas)?;
    // A folder that cannot be taken is a failure of its replica alone.
    let (mut runs, mut places, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for (place, replica) in replicas.iter().enumerate() {
        match Run::open(replica, device) {
            Ok(run) => {
                watch(place, Event::Started { step: run.step, steps: run.settings.steps });
                runs.push(run);
                places.push(place);
                reports.push(None);
            }
            Err(error) => reports.push(Some(Err(error))),
        }
    }
    let mut watch = |member: usize, event| watch(places[member], event);
    while let Some((members, until)) = next_cohort(&runs) {
        let seeds = members.iter().map(|&member| runs[member].settings.seed).collect::<Vec<_>>();
        let backend = setup.backend(&seeds)?;
        let mut cohort = Cohort::new(setup, &backend, &mut runs, &members)?;
        cohort.begin(&mut runs, stop, &mut watch)?;
        cohort.advance(&mut runs, until, stop, &mut watch)?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    runs.iter_mut().for_each(Run::finish);
    let mut runs = runs.into_iter().map(Run::report);
    Ok(reports.into_iter().filter_map(|report| report.or_else(|| runs.next())).collect())
}

/// The unfinished runs that are furthest behind, and the step at which others join them.
fn next_cohort(runs: &[Run<'_>]) -> Option<(Vec<usize>, u64)> {
    let unfinished = || runs.iter().enumerate().filter(|(_, run)| run.goes_on());
    let least = unfinished().map(|(_, run)| run.step).min()?;
    let members = unfinished().filter(|(_, run)| run.step == least).map(|(index, _)| index);
    let others = unfinished().map(|(_, run)| run.step).filter(|&step| step > least);
    let until = others.min().unwrap_or(runs[0].settings.steps);
    Some((members.collect(), until))
}

/// Refuses replicas that cannot be one recorded step.
fn check_together(replicas: &[Replica<'_>]) -> Result<()> {
    let Some(first) = replicas.first() else {
        let found = "none".to_owned();
        return Err(Error::Setting { setting: "runs".into(), expected: "at least one", found });
    };
    for replica in replicas {
        replica.settings.check()?;
        let found = || format!("another one in {}", replica.folder.path().display());
        if let Some(setting) = difference(first.settings, replica.settings) {
            let expected = "the same in every run that is trained at once";
            return Err(Error::Setting { setting, expected, found: found() });
        }
        if replica.task.dimensions != first.task.dimensions {
            let expected = "data of the same widths in every run that is trained at once";
            return Err(Error::Setting { setting: "task".into(), expected, found: found() });
        }
    }
    Ok(())
}

/// Whether two runs can be trained at once, as far as their settings say.
pub(crate) fn together(a: &RunSettings, b: &RunSettings) -> bool {
    difference(a, b).is_none()
}

/// The first key that keeps two runs from being one recorded step.
fn difference(a: &RunSettings, b: &RunSettings) -> Option<String> {
    let RunSettings { seed, goals, evaluation, task, .. } = a.clone();
    let same = RunSettings { seed, goals, evaluation, task, ..b.clone() };
    let steps = || (a.steps != b.steps).then(|| "steps".to_owned());
    a.difference(&same).or_else(steps)
}
