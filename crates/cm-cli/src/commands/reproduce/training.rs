//! All runs of an experiment, trained.

use std::sync::atomic::Ordering;

use anyhow::bail;
use cm_train::{Device, Job, RunFolder, run_jobs};

use crate::interrupt;
use crate::progress::Progress;

/// Refuses folders of runs with other settings, before anything is trained: a table is of runs that
/// were asked for alone.
pub(super) fn check(jobs: &[Job]) -> anyhow::Result<()> {
    jobs.iter().try_for_each(|job| RunFolder::new(&job.folder).check(&job.settings))?;
    Ok(())
}

/// Trains with progress bars, `workers` at a time or as many as there are processors. A run that
/// fails does not stop the others.
pub(super) fn train(
    device: Device,
    jobs: &[Job],
    names: Vec<String>,
    workers: Option<usize>,
) -> anyhow::Result<()> {
    let progress = Progress::new(names, false);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = interrupt::listen();
    let workers = workers.unwrap_or(processors);
    let results = run_jobs(device, jobs, workers, stop, |i, event| progress.job(i, &event))?;
    drop(progress);
    for (job, result) in jobs.iter().zip(&results) {
        if let Some(Err(error)) = result {
            eprintln!("{}: {error}", job.folder.display());
        }
    }
    if stop.load(Ordering::Relaxed) {
        bail!("interrupted; the same command goes on from here");
    }
    if results.iter().flatten().all(Result::is_err) {
        bail!("every run failed");
    }
    Ok(())
}

/// On the CPU all runs side by side; on a GPU one cell of the table after another, its seeds at
/// once.
pub(super) fn train_cells(
    device: Device,
    jobs: &[Job],
    name: fn(&Job) -> String,
    workers: Option<usize>,
) -> anyhow::Result<()> {
    let names = |jobs: &[Job]| jobs.iter().map(name).collect();
    if device == Device::Cpu {
        return train(device, jobs, names(jobs), workers);
    }
    let cell = |job: &Job| (job.settings.task.clone(), job.settings.method.method());
    let cells = || jobs.chunk_by(|a, b| cell(a) == cell(b));
    let mut failed = 0;
    for cell in cells() {
        if let Err(error) = train(device, cell, names(cell), workers) {
            if interrupt::is_requested() {
                return Err(error);
            }
            eprintln!("{}: {error}", name(&cell[0]));
            failed += 1;
        }
    }
    if failed == cells().count() {
        bail!("every run failed");
    }
    Ok(())
}

/// Puts a run of other settings where `job` is to be, and asserts that `run` refuses it by name and
/// does nothing.
#[cfg(test)]
pub(super) fn assert_refused(job: &Job, run: impl FnOnce() -> anyhow::Result<()>) {
    let other = cm_train::RunSettings { batch: 7, ..job.settings.clone() };
    std::fs::create_dir(&job.folder).unwrap();
    std::fs::write(job.folder.join("config.toml"), other.to_toml()).unwrap();
    let error = run().unwrap_err().to_string();
    let name = job.folder.file_name().unwrap().to_str().unwrap();
    assert!(error.contains(name) && error.contains("`batch`"), "{error}");
    let all = std::fs::read_dir(job.folder.parent().unwrap()).unwrap();
    assert_eq!(all.count(), 1);
}
