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
/// once, or `at_once` cells of a method.
pub(super) fn train_cells(
    device: Device,
    jobs: &[Job],
    name: fn(&Job) -> String,
    workers: Option<usize>,
    at_once: usize,
) -> anyhow::Result<()> {
    let names = |jobs: &[Job]| jobs.iter().map(name).collect();
    if device == Device::Cpu {
        return train(device, jobs, names(jobs), workers);
    }
    let pieces = pieces(jobs, at_once);
    let mut failed = 0;
    for piece in &pieces {
        if let Err(error) = train(device, piece, names(piece), workers) {
            if interrupt::is_requested() {
                return Err(error);
            }
            eprintln!("{}: {error}", name(&piece[0]));
            failed += 1;
        }
    }
    if failed == pieces.len() {
        bail!("every run failed");
    }
    Ok(())
}

/// The jobs of one cell (a task and a method) after another, or of `at_once` cells of a method.
fn pieces(jobs: &[Job], at_once: usize) -> Vec<Vec<Job>> {
    let method = |job: &Job| job.settings.method.method();
    let mut pieces = Vec::<(usize, Vec<Job>)>::new();
    let same = |a: &Job, b: &Job| a.settings.task == b.settings.task && method(a) == method(b);
    for cell in jobs.chunk_by(same) {
        let has_room = |(cells, piece): &&mut (usize, Vec<Job>)| {
            *cells < at_once && method(&piece[0]) == method(&cell[0])
        };
        match pieces.iter_mut().find(has_room) {
            Some((cells, piece)) => {
                *cells += 1;
                piece.extend_from_slice(cell);
            }
            None => pieces.push((1, cell.to_vec())),
        }
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
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

#[cfg(test)]
mod tests {
    use cm_train::{AntMazeTask, Method, RunSettings};

    use super::*;

    #[test]
    fn cells_of_a_method_are_trained_at_once_if_asked_for() {
        let mut jobs = Vec::new();
        for task in ["umaze", "medium-play", "large-play"] {
            for method in [Method::Cmd1, Method::Gcbc] {
                for seed in 0..2 {
                    let (name, file) = (format!("antmaze-{task}-v2"), task.into());
                    let of_task = AntMazeTask { task: name, file, scale: false };
                    let settings = RunSettings { seed, ..RunSettings::ant_maze(method, of_task) };
                    let folder = format!("{task}-{method}-{seed}").into();
                    jobs.push(Job { settings, folder });
                }
            }
        }
        let folders = |at_once: usize| {
            let of = |piece: &Vec<Job>| piece.iter().map(|job| job.folder.clone()).collect();
            pieces(&jobs, at_once).iter().map(of).collect::<Vec<Vec<_>>>()
        };
        let one = folders(1);
        assert_eq!(one.len(), 6);
        assert_eq!(one.concat(), jobs.iter().map(|job| job.folder.clone()).collect::<Vec<_>>());
        let two = folders(2);
        assert_eq!(two.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2, 2]);
        assert_eq!(two[0][3], std::path::Path::new("medium-play-cmd1-1"));
        assert_eq!(folders(3).len(), 2);
        // They are one piece of work for the device.
        assert_eq!(cm_train::job_groups(&pieces(&jobs, 3)[0], None).len(), 1);
    }
}
