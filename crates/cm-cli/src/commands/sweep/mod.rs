//! `cm sweep`: many runs from one description, on this machine or on a Slurm cluster.

mod engine;
mod estimate;
mod folder;
mod local;
mod mounts;
mod plan;
mod progress;
mod report;
mod runs;
mod shipped;
mod slurm;
mod status;
mod values;
mod work;

use std::path::PathBuf;

use anyhow::{Context, bail};

use self::engine::Engine;
use self::folder::SweepFolder;
use self::local::Local;
use self::plan::Plan;
use self::progress::Progress;
use self::runs::{PlannedRun, runs};
use self::slurm::{Slurm, SlurmFlags, TaskArguments};

const EXAMPLES: &str = "Examples:
  cm sweep plan.toml --dry-run
  cm sweep plan.toml
  cm sweep plan.toml --on slurm --partition gpu --time 4:00:00
  cm sweep pointmaze --dry-run
  cm sweep plans";

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = format!("Again trains only what is missing.\n\n{EXAMPLES}")
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    start: StartArguments,
}

#[derive(clap::Args)]
struct StartArguments {
    #[command(flatten)]
    plan: PlanArguments,
    /// Where to train.
    #[arg(long, value_enum, default_value = "local")]
    on: On,
    /// Print the runs with an estimate of time and size, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Runs at the same time on this machine; the number of processors if not given.
    #[arg(long)]
    workers: Option<usize>,
    #[command(flatten)]
    slurm: SlurmFlags,
}

#[derive(Clone, clap::Args)]
struct PlanArguments {
    /// The plan: a TOML file, or the name of a plan that is shipped (`cm sweep plans`).
    #[arg(required = true)]
    plan: Option<PathBuf>,
    /// Folder of all runs, instead of the plan's.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum On {
    /// This machine: all cores, or one GPU with seeds side by side.
    Local,
    /// A Slurm cluster, as one job array.
    Slurm,
}

#[derive(clap::Subcommand)]
enum Command {
    /// How far every run is, where it is, and the first error of each that failed.
    #[command(after_help = "Example:\n  cm sweep status plan.toml")]
    Status {
        #[command(flatten)]
        plan: PlanArguments,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// End all runs, here or in Slurm's queue; checkpoints stay, and `cm sweep` goes on from them.
    #[command(after_help = "Example:\n  cm sweep cancel plan.toml")]
    Cancel {
        #[command(flatten)]
        plan: PlanArguments,
    },
    /// Write the table, the curves and the page of what there is.
    #[command(after_help = "Example:\n  cm sweep report plan.toml")]
    Report {
        #[command(flatten)]
        plan: PlanArguments,
    },
    /// The plans that are shipped, which are the paper's experiments; or one of them, printed.
    #[command(after_help = "Examples:\n  cm sweep plans\n  cm sweep plans antmaze > plan.toml")]
    Plans {
        /// Print this one.
        name: Option<String>,
    },
    /// One task of a job array; Slurm calls it.
    #[command(
        hide = true,
        after_help = "Example:\n  cm sweep task runs/a --submission 1 --index 0"
    )]
    Task(TaskArguments),
}

/// A plan with its runs and its folder.
pub(crate) struct Sweep {
    plan: Plan,
    runs: Vec<PlannedRun>,
    folder: SweepFolder,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        None => start(&arguments.start),
        Some(Command::Status { plan, json }) => status::print(&Sweep::load(&plan)?, json),
        Some(Command::Report { plan }) => report::write(&Sweep::load(&plan)?),
        Some(Command::Cancel { plan }) => cancel(&Sweep::load(&plan)?),
        Some(Command::Plans { name }) => shipped::print(name.as_deref()),
        Some(Command::Task(arguments)) => slurm::task(&arguments),
    }
}

impl Sweep {
    fn load(arguments: &PlanArguments) -> anyhow::Result<Self> {
        let file = arguments.plan.as_deref().context("expected a plan")?;
        let mut plan = Plan::load(file)?;
        if let Some(out) = &arguments.out {
            plan.out.clone_from(out);
        }
        let runs = runs(&plan)?;
        let folder = SweepFolder::of(&plan.out);
        Ok(Self { plan, runs, folder })
    }
}

fn start(arguments: &StartArguments) -> anyhow::Result<()> {
    let mut sweep = Sweep::load(&arguments.plan)?;
    arguments.slurm.apply(&mut sweep.plan.slurm);
    if arguments.dry_run {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        return estimate::print(&sweep, arguments.workers.unwrap_or(processors));
    }
    let lock = sweep.folder.lock()?;
    let slurm = Slurm::new(&sweep.plan.slurm);
    // Without an answer nobody knows what Slurm trains, so nothing is started.
    let queued = slurm.places(&sweep).context("what Slurm has of this sweep is not known")?;
    if arguments.on == On::Local && !queued.is_empty() {
        bail!(
            "{}: {} runs of this folder are with Slurm; wait for them, or end them with \
             `cm sweep cancel`",
            sweep.plan.out.display(),
            queued.len()
        );
    }
    let mut missing = Vec::new();
    for run in &sweep.runs {
        let progress = Progress::of(run);
        match &progress.error {
            Some(error) => bail!("{error}"),
            None if progress.finished() || queued.contains_key(&run.name) => {}
            None => missing.push(run),
        }
    }
    if missing.is_empty() {
        println!("nothing is missing of {} runs ({} with Slurm)", sweep.runs.len(), queued.len());
        return if queued.is_empty() { report::write(&sweep) } else { Ok(()) };
    }
    match arguments.on {
        On::Local => Local { workers: arguments.workers }.start(&sweep, &missing, lock),
        On::Slurm => slurm.start(&sweep, &missing, lock),
    }
}

fn cancel(sweep: &Sweep) -> anyhow::Result<()> {
    let here = Local { workers: None }.cancel(sweep)?;
    let there = Slurm::new(&sweep.plan.slurm).cancel(sweep)?;
    println!("ended: {here} runs here, {there} with Slurm");
    Ok(())
}

/// The jobs of a plan that is shipped, in the order of their folders.
#[cfg(test)]
pub(crate) fn jobs_of_shipped(name: &str) -> Vec<cm_train::Job> {
    let plan = Plan::load(name.as_ref()).unwrap();
    let mut jobs: Vec<_> = runs(&plan).unwrap().into_iter().map(|run| run.job).collect();
    jobs.sort_by(|a, b| a.folder.cmp(&b.folder));
    jobs
}
