//! `cm reproduce pointmaze`: trains every method on the 2-D world and writes Figures 2 and 3.

mod maps;
mod report;
mod study;

use std::path::{Path, PathBuf};

use anyhow::bail;
use cm_train::{Device, Job, Method, PointMazeTask, RunSettings};

use super::training::{check, train};
use crate::commands::device;
use crate::config::{PlanArguments, SetArguments};

#[derive(clap::Args)]
#[command(
    after_help = "Running it again goes on where it stopped, and adds what is missing if there \
        are more steps, seeds or methods.\n\nExamples:\n  \
        cm reproduce pointmaze\n  \
        cm reproduce pointmaze --full --device cuda\n  \
        cm reproduce pointmaze --worlds --seeds 3 --methods cmd1 --out runs/worlds\n  \
        cm reproduce pointmaze --full --steps 200000 --methods cmd1,qrl --out runs/two"
)]
pub(crate) struct Arguments {
    /// The paper's budget: 500,000 steps, eight seeds, 500 episodes per evaluation. For a GPU:
    /// on a processor it takes days.
    #[arg(long)]
    full: bool,
    /// Training steps; 10,000, or 500,000 with --full.
    #[arg(long)]
    steps: Option<u64>,
    /// Seeds, from 0 on; 1, or 8 with --full.
    #[arg(long)]
    seeds: Option<u64>,
    /// Draw a world for each seed, as the authors' script does, and not only data and training.
    #[arg(long)]
    worlds: bool,
    /// Episodes per evaluation; 300, or 500 with --full.
    #[arg(long)]
    episodes: Option<usize>,
    /// Evaluate every so many steps; 1,000, or 25,000 with --full.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    evaluate_every: Option<u64>,
    /// Which methods.
    #[arg(long, value_delimiter = ',', default_value = "cmd1,cmd2,qrl,crl,q-learning,gcbc")]
    methods: Vec<Method>,
    /// Folder for runs, figures and the page; runs/pointmaze, or runs/pointmaze-full with --full.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Runs at the same time, each on one thread; the number of processors if not given.
    #[arg(long)]
    workers: Option<usize>,
    #[command(flatten)]
    set: SetArguments,
    #[command(flatten)]
    plan: PlanArguments,
    /// Only write the figures and the page of what there is.
    #[arg(long)]
    report_only: bool,
}

pub(crate) fn run(arguments: &Arguments, wanted: Device) -> anyhow::Result<()> {
    let out = arguments.out.clone().unwrap_or_else(|| {
        PathBuf::from(if arguments.full { "runs/pointmaze-full" } else { "runs/pointmaze" })
    });
    let jobs = jobs(arguments, &out)?;
    if !arguments.report_only {
        let device = device(wanted)?;
        check(&jobs)?;
        let names = jobs
            .iter()
            .map(|job| format!("{} {}", job.settings.method.method().title(), job.settings.seed));
        train(device, &jobs, names.collect(), arguments.workers)?;
    }
    report::write(&jobs, &out)
}

/// The runs: seed by seed, the longest methods first, so that processors end about the same time.
fn jobs(arguments: &Arguments, out: &Path) -> anyhow::Result<Vec<Job>> {
    let (steps, seeds, episodes, every) =
        if arguments.full { (500_000, 8, 500, 25_000) } else { (10_000, 1, 300, 1_000) };
    let every = arguments.evaluate_every.unwrap_or(every);
    let seeds = arguments.seeds.unwrap_or(seeds);
    if seeds == 0 || arguments.methods.is_empty() {
        bail!("expected at least one seed and one method");
    }
    let set = arguments.set.settings(&arguments.methods)?;
    let mut jobs = Vec::new();
    for seed in 0..seeds {
        for &method in &arguments.methods {
            let mut settings = RunSettings::plane(method);
            settings.seed = seed;
            settings.steps = arguments.steps.unwrap_or(steps);
            settings.evaluate_every = every;
            settings.checkpoint_every = every;
            settings.evaluation.episodes = arguments.episodes.unwrap_or(episodes);
            settings.task.set_data_seed(seed);
            if let Some(task) = settings.task.get::<PointMazeTask>().filter(|_| arguments.worlds) {
                let mut task = task.clone();
                task.world.seed = seed;
                settings.task = task.into();
            }
            settings.plan = arguments.plan.settings(None)?;
            let settings = set.apply(&settings)?;
            jobs.push(Job { folder: out.join(format!("{method}-{seed}")), settings });
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::training::assert_refused;
    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn each_seed_has_its_own_data_and_with_worlds_its_own_world() {
        let seeds = |further: &[&str]| {
            let words = ["x", "--seeds", "2", "--methods", "cmd1"].iter().chain(further);
            let arguments = Program::try_parse_from(words).unwrap().arguments;
            let jobs = jobs(&arguments, "runs".as_ref()).unwrap();
            let of_job = |job: &Job| {
                let task = job.settings.task.get::<PointMazeTask>().unwrap();
                [job.settings.seed, task.data.seed, task.world.seed]
            };
            jobs.iter().map(of_job).collect::<Vec<_>>()
        };
        assert_eq!(seeds(&[]), [[0, 0, 0], [1, 1, 0]]);
        assert_eq!(seeds(&["--worlds"]), [[0, 0, 0], [1, 1, 1]]);
    }

    #[test]
    fn other_settings_can_be_given_by_their_keys() {
        let words = ["x", "--set", "batch=7", "--set", "method.qrl.margin=0.5"];
        let arguments = Program::try_parse_from(words).unwrap().arguments;
        let jobs = jobs(&arguments, "runs".as_ref()).unwrap();
        assert_eq!(jobs.len(), 6);
        assert!(jobs.iter().all(|job| job.settings.batch == 7));
        let qrl = jobs.iter().find(|job| job.settings.method.method() == Method::Qrl).unwrap();
        assert!(qrl.settings.to_toml().contains("margin = 0.5"));
    }

    #[test]
    fn runs_of_other_settings_are_refused_before_anything_is_trained() {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().to_str().unwrap();
        let words = ["x", "--seeds", "2", "--methods", "gcbc", "--out", out];
        let arguments = Program::try_parse_from(words).unwrap().arguments;
        let other = &jobs(&arguments, scratch.path()).unwrap()[1];
        assert_refused(other, || run(&arguments, Device::Cpu));
    }

    #[test]
    fn the_plan_that_is_shipped_has_the_same_runs() {
        let arguments = Program::try_parse_from(["x", "--full"]).unwrap().arguments;
        let mut wanted = jobs(&arguments, "runs/pointmaze-full".as_ref()).unwrap();
        wanted.sort_by(|a, b| a.folder.cmp(&b.folder));
        assert_eq!(crate::commands::sweep::jobs_of_shipped("pointmaze"), wanted);
    }
}
