//! All runs of an experiment, trained.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use cm_train::{Device, Job, JobEvent, RunFolder, run_jobs};

use super::supply::Supply;
use crate::bars::Bars;
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
    let stop = interrupt::listen();
    let workers = workers.unwrap_or_else(processors);
    let results = run_jobs(device, jobs, workers, stop, |i, event| progress.job(i, &event))?;
    drop(progress);
    let ended = jobs.iter().zip(&results);
    let failed = ended.filter_map(|(job, result)| Some((job, result.as_ref()?.as_ref().err()?)));
    let failed = failed.map(|(job, error)| (&*job.folder, error.to_string())).collect::<Vec<_>>();
    conclude(jobs.len(), &failed)
}

/// How cells of a table (a task and a method, all seeds) are trained on a GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    /// Of how many tasks a method's runs are one recorded step.
    pub(super) tasks_at_once: usize,
    /// How many such pieces are side by side.
    pub(super) side_by_side: usize,
}

/// On the CPU all runs side by side, when all data is there; on a GPU cell by cell, each when its
/// own data is there. No number depends on how many there are at once.
pub(super) fn train_cells(
    device: Device,
    jobs: &[Job],
    name: fn(&Job) -> String,
    workers: Option<usize>,
    cells: Cells,
    supply: impl FnOnce(Bars) -> anyhow::Result<Supply>,
) -> anyhow::Result<()> {
    let names = jobs.iter().map(name).collect();
    if device == Device::Cpu {
        let supply = supply(Bars::new())?;
        jobs.iter().try_for_each(|job| supply.wait(job, &AtomicBool::new(false)))?;
        return train(device, jobs, names, workers);
    }
    let progress = Progress::new(names, false);
    let supply = supply(progress.bars())?;
    let workers = workers.unwrap_or_else(processors);
    let failed = train_pieces(device, jobs, cells, workers, &supply, &progress);
    drop(progress);
    let failed = failed.into_iter().map(|(index, reason)| (&*jobs[index].folder, reason));
    conclude(jobs.len(), &failed.collect::<Vec<_>>())
}

/// Returns the jobs that failed, by their places, and why.
fn train_pieces(
    device: Device,
    jobs: &[Job],
    cells: Cells,
    workers: usize,
    supply: &Supply,
    progress: &Progress,
) -> Vec<(usize, String)> {
    let Cells { tasks_at_once, side_by_side } = cells;
    let pieces = pieces(jobs, tasks_at_once);
    let lanes = side_by_side.clamp(1, pieces.len().max(1));
    let stop = interrupt::listen();
    let train = |piece: &[usize]| {
        let of_piece = piece.iter().map(|&index| jobs[index].clone()).collect::<Vec<_>>();
        of_piece.iter().try_for_each(|job| supply.wait(job, stop))?;
        let watch = |index: usize, event: JobEvent<'_>| progress.job(piece[index], &event);
        anyhow::Ok(run_jobs(device, &of_piece, workers.div_ceil(lanes), stop, watch)?)
    };
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let lane = || {
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let reasons = match train(piece) {
                _ if stop.load(Ordering::Relaxed) => break,
                Ok(results) => {
                    results.into_iter().map(|result| Some(result?.err()?.to_string())).collect()
                }
                Err(error) => vec![Some(format!("{error:#}")); piece.len()],
            };
            let reasons = piece.iter().zip(reasons).filter_map(|(&index, why)| Some((index, why?)));
            failed.lock().unwrap_or_else(PoisonError::into_inner).extend(reasons);
        }
    };
    std::thread::scope(|scope| (0..lanes).for_each(|_| drop(scope.spawn(lane))));
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    failed
}

/// Says which of `runs` runs failed; an error if all did, or if there was an interrupt.
fn conclude(runs: usize, failed: &[(&Path, String)]) -> anyhow::Result<()> {
    for (folder, reason) in failed {
        eprintln!("{}: {reason}", folder.display());
    }
    if interrupt::is_requested() {
        bail!("interrupted; the same command goes on from here");
    }
    if runs > 0 && failed.len() == runs {
        bail!("every run failed");
    }
    Ok(())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The jobs of one cell (a task and a method) after another, or of `at_once` cells of a method, by
/// their places.
fn pieces(jobs: &[Job], at_once: usize) -> Vec<Vec<usize>> {
    let method = |index: usize| jobs[index].settings.method.method();
    let mut pieces = Vec::<(usize, Vec<usize>)>::new();
    let same = |&a: &usize, &b: &usize| {
        jobs[a].settings.task == jobs[b].settings.task && method(a) == method(b)
    };
    let places = (0..jobs.len()).collect::<Vec<_>>();
    for cell in places.chunk_by(same) {
        let has_room = |(cells, piece): &&mut (usize, Vec<usize>)| {
            *cells < at_once && method(piece[0]) == method(cell[0])
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

    /// Cells side by side give the numbers of runs one after another; one whose data cannot be made
    /// stops nobody.
    #[test]
    fn cells_side_by_side_are_as_runs_by_themselves() {
        let scratch = tempfile::tempdir().unwrap();
        let jobs = |folder: &str| {
            let mut jobs = Vec::new();
            for method in [Method::Gcbc, Method::Cmd1] {
                for seed in 0..2 {
                    let settings = RunSettings::tiny_plane(method, seed);
                    let folder = scratch.path().join(format!("{folder}/{method}-{seed}"));
                    jobs.push(Job { settings, folder });
                }
            }
            jobs
        };
        let lost = AntMazeTask { task: "lost".into(), file: "lost.cmdata".into(), scale: false };
        let lost = RunSettings::ant_maze(Method::Gcbc, lost);
        let mut cells = jobs("cells");
        cells.push(Job { settings: lost, folder: scratch.path().join("lost") });
        let supply = Supply::begin(&["lost"], |_| Ok(false), |_| bail!("no simulator")).unwrap();
        let progress = Progress::new(vec![String::new(); cells.len()], true);
        let together = Cells { tasks_at_once: 1, side_by_side: 2 };
        let failed = train_pieces(Device::Cpu, &cells, together, 2, &supply, &progress);
        assert_eq!(failed, [(4, "no simulator".to_owned())]);
        let alone = jobs("alone");
        run_jobs(Device::Cpu, &alone, 1, &AtomicBool::new(false), |_, _| {}).unwrap();
        for (cell, alone) in cells.iter().zip(&alone) {
            for file in ["evaluations.csv", "metrics.csv", "model.safetensors"] {
                let [cell, alone] =
                    [cell, alone].map(|job| std::fs::read(job.folder.join(file)).unwrap());
                assert!(!alone.is_empty() && cell == alone, "{file}");
            }
        }
    }

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
            let of =
                |piece: &Vec<usize>| piece.iter().map(|&job| jobs[job].folder.clone()).collect();
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
        let piece = pieces(&jobs, 3)[0].iter().map(|&job| jobs[job].clone()).collect::<Vec<_>>();
        assert_eq!(cm_train::job_groups(&piece, None).len(), 1);
    }
}
