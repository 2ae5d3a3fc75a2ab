//! A policy for goals nearby, cloned from the data, on the road maps of other methods.

use std::path::Path;

use cm_envs::Rollout;
use cm_envs::ogbench::OgTask;
use cm_train::{Evaluation, Job, Model, RoadMap, RunFolder, RunSettings, read_evaluations};

use super::super::output::csv;
use crate::interrupt;

/// The run that clones with goals drawn by the discount `gamma`, in the place of a GCBC's.
pub(super) fn job(out: &Path, task: OgTask, gcbc: RunSettings, gamma: f64) -> Job {
    let folder = out.join(format!("{task}-nearby-{}", gcbc.seed));
    let mut settings = RunSettings { plan: None, ..gcbc };
    (settings.goals.gamma, settings.goals.actor) = (gamma, None);
    Job { folder, settings }
}

/// Lets the policies of `nearby` walk the maps of the last models of `jobs`, where they have not.
pub(super) fn walk(jobs: &[Job], nearby: &[Job]) -> anyhow::Result<()> {
    for job in jobs {
        let of_job = |near: &&Job| {
            near.settings.task == job.settings.task && near.settings.seed == job.settings.seed
        };
        let (run, near) = (RunFolder::new(&job.folder), nearby.iter().find(of_job));
        let Some(near) = near.map(|near| RunFolder::new(&near.folder)) else { continue };
        // What failed to train has neither.
        if !run.map_file(false).exists() || !near.model_file().exists() || is_done(&run, job)? {
            continue;
        }
        let task = job.settings.task.open()?;
        let (metric, policy) = (Model::load(&run, false)?, Model::load(&near, false)?);
        let map = RoadMap::load(&run.map_file(false), &metric, &task)?;
        let plan = &job.settings.evaluation;
        let plan = Rollout { episodes: plan.episodes, seed: plan.seed, paths: 0 };
        let found = metric.evaluate_with(&policy, &map, task.world()?, &plan)?;
        println!("{}: {:.1} % by GCBC on its map", job.folder.display(), 100.0 * found.success);
        cm_files::replace(run.nearby_file(), csv(&rows(job.settings.steps, &found)))?;
        if interrupt::is_requested() {
            anyhow::bail!("interrupted; the same command goes on from here");
        }
    }
    Ok(())
}

fn is_done(run: &RunFolder, job: &Job) -> anyhow::Result<bool> {
    let file = run.nearby_file();
    let last =
        if file.exists() { read_evaluations(&file)?.last().map(|row| row.step) } else { None };
    Ok(last == Some(job.settings.steps))
}

/// An evaluation as a file of one row.
fn rows(step: u64, found: &Evaluation) -> [Vec<String>; 2] {
    let mut titles = ["step", "success", "mean_steps"].map(str::to_owned).to_vec();
    titles.extend((1..=found.tasks.len()).map(|task| format!("task_{task}")));
    let mut values =
        vec![step.to_string(), found.success.to_string(), found.mean_steps.to_string()];
    values.extend(found.tasks.iter().map(f64::to_string));
    [titles, values]
}
