//! `cm reproduce antmaze`: the paper's table on D4RL's AntMaze.

mod data;
mod distances;
mod paper;
mod preset;
mod report;
mod tables;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::bail;
use cm_envs::ant_maze::{Recipe, Task};
use cm_envs::mujoco::Mujoco;
use cm_train::{AntMazeTask, Device, Job, Method, RunSettings};

use self::data::{Source, TaskData};
use self::preset::{Contrast, Origin, Policy, Preset, States};
use super::training::{check, train_cells};
use crate::config::PlanArguments;

#[derive(clap::Args)]
#[command(
    after_help = "Data that is not there is downloaded or generated first, which needs MuJoCo: \
        cm mujoco install. Running it again goes on where it stopped; a run that fails does not \
        stop the others.\n\nExamples:\n  \
        cm reproduce antmaze --preset small --tasks umaze --methods cmd1,gcbc\n  \
        cm reproduce antmaze --device cuda --preset half --seeds 4\n  \
        cm reproduce antmaze --device cuda --seeds 4"
)]
pub(crate) struct Arguments {
    /// Which tasks: umaze, umaze-diverse, medium-play, medium-diverse, large-play, large-diverse;
    /// all if not given.
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<Task>,
    /// Which methods.
    #[arg(long, value_delimiter = ',', default_value = "cmd1,cmd2,qrl,crl,gcbc,iql")]
    methods: Vec<Method>,
    /// Seeds, from 0 on.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Sizes and settings; all but `small` have the authors' settings.
    #[arg(long, default_value = "paper")]
    preset: Preset,
    /// The same as --preset small.
    #[arg(long, conflicts_with = "preset")]
    small: bool,
    /// Whose word is taken for the losses and rates of CMD-1, CMD-2, CRL and GCBC; `small` has its
    /// own.
    #[arg(long, default_value = "code")]
    settings: Origin,
    /// How policies come from distances: by the weighted sum of the authors' code, or by regression
    /// weighted by advantages, as in the paper's text.
    #[arg(long, default_value = "sum")]
    policy: Policy,
    /// What networks see of states and actions; the preset's if not given: plain, or scaled in
    /// `small`.
    #[arg(long)]
    states: Option<States>,
    /// The contrastive loss of CMD-1, CMD-2 and CRL; symmetric if not given.
    #[arg(long)]
    contrast: Option<Contrast>,
    /// Training steps; the preset's if not given.
    #[arg(long)]
    steps: Option<u64>,
    /// Evaluate every so many steps; a tenth of them all if not given.
    #[arg(long)]
    evaluate_every: Option<u64>,
    /// Episodes per evaluation.
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    /// Widths of the hidden layers of every network; the preset's if not given.
    #[arg(long, value_delimiter = ',')]
    hidden: Vec<usize>,
    /// Rows of a batch; the preset's if not given.
    #[arg(long)]
    batch: Option<usize>,
    /// Learning rate of every network; each method's own if not given.
    #[arg(long)]
    learning_rate: Option<f32>,
    /// Which data: D4RL's own, or generated.
    #[arg(long, default_value = "generated")]
    data: Source,
    /// By which recipe data is generated: d4rl, d4rl-code or clean. What another has made is
    /// refused.
    #[arg(long, default_value_t = Recipe::D4rl)]
    recipe: Recipe,
    /// Where the data is; where `cm data` keeps it if not given.
    #[arg(long)]
    data_folder: Option<PathBuf>,
    /// Folder for runs, figures and the page.
    #[arg(long, default_value = "runs/antmaze")]
    out: PathBuf,
    /// Runs at the same time, each on one thread; the number of processors if not given.
    #[arg(long)]
    workers: Option<usize>,
    /// On a GPU: of how many tasks a method's runs are trained at once; no number depends on it. On
    /// the CPU all runs are side by side.
    #[arg(long, value_name = "N", default_value = "1")]
    tasks_at_once: NonZeroUsize,
    #[command(flatten)]
    plan: PlanArguments,
    /// Print which data sets are needed, where they are looked for and which are there, and stop.
    #[arg(long)]
    list_data: bool,
    /// Only write the table and the page of what there is.
    #[arg(long)]
    report_only: bool,
}

pub(crate) fn run(arguments: &Arguments, device: Device) -> anyhow::Result<()> {
    let tasks =
        if arguments.tasks.is_empty() { Task::ALL.to_vec() } else { arguments.tasks.clone() };
    let data = TaskData::new(arguments.data, arguments.recipe, arguments.data_folder.as_deref());
    if arguments.list_data {
        data.list(&tasks);
        return Ok(());
    }
    let jobs = jobs(arguments, &tasks, &data)?;
    if !arguments.report_only {
        check(&jobs)?;
        Mujoco::find()?;
        tasks.iter().try_for_each(|&task| data.get(task))?;
        train_cells(device, &jobs, name, arguments.workers, arguments.tasks_at_once.get())?;
    }
    report::write(arguments, &tasks, &jobs, &data)
}

/// What a run's bar is called.
fn name(job: &Job) -> String {
    let folder = job.folder.file_name().unwrap_or_default().to_string_lossy();
    folder.trim_start_matches("antmaze-").to_owned()
}

fn jobs(arguments: &Arguments, tasks: &[Task], data: &TaskData) -> anyhow::Result<Vec<Job>> {
    if arguments.seeds == 0 || arguments.methods.is_empty() || arguments.hidden.contains(&0) {
        bail!("expected at least one seed and one method, and no hidden layer of width 0");
    }
    let preset = if arguments.small { Preset::Small } else { arguments.preset };
    if preset == Preset::Small && arguments.settings == Origin::Text {
        bail!(
            "--settings text: the preset `small` has settings of its own; expected half or paper"
        );
    }
    let steps = arguments.steps.unwrap_or(preset.steps());
    let every = arguments.evaluate_every.unwrap_or((steps / 10).max(1));
    let mut jobs = Vec::new();
    for &task in tasks {
        for &method in &arguments.methods {
            for seed in 0..arguments.seeds {
                let (name, file) = (task.name().to_owned(), data.file(task));
                let scale = arguments.states.unwrap_or(preset.states()) == States::Scaled;
                let of_task = AntMazeTask { task: name, file, scale };
                let mut settings = RunSettings::ant_maze(method, of_task);
                settings.method = preset.method(method, arguments.settings)?;
                if !arguments.hidden.is_empty() {
                    settings.method.set_hidden(&arguments.hidden);
                }
                if let Some(contrast) = arguments.contrast {
                    settings.method.set_contrastive_loss(contrast.loss());
                }
                if let Policy::AdvantageWeighted = arguments.policy {
                    settings.method.set_advantage_weighted(1.0);
                }
                if let Some(rate) = arguments.learning_rate {
                    settings.method.set_learning_rate(rate);
                }
                settings.method.set_decay_steps(steps);
                settings.batch = arguments.batch.unwrap_or(preset.batch());
                (settings.seed, settings.steps) = (seed, steps);
                (settings.evaluate_every, settings.checkpoint_every) = (every, every.min(5_000));
                settings.evaluation.episodes = arguments.episodes;
                settings.plan = arguments.plan.settings(None)?;
                settings.check()?;
                let folder = arguments.out.join(format!("{task}-{method}-{seed}"));
                jobs.push(Job { folder, settings });
            }
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cm_train::MethodSettings;

    use super::super::training::assert_refused;
    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_plan_that_is_shipped_has_the_same_runs() {
        let arguments = Program::try_parse_from(["x", "--seeds", "4"]).unwrap().arguments;
        let data = TaskData::new(arguments.data, arguments.recipe, None);
        let mut wanted = jobs(&arguments, &Task::ALL, &data).unwrap();
        wanted.sort_by(|a, b| a.folder.cmp(&b.folder));
        assert_eq!(crate::commands::sweep::jobs_of_shipped("antmaze"), wanted);
    }

    #[test]
    fn states_losses_and_settings_can_be_chosen() {
        let settings = |words: &[&str]| {
            let start = ["x", "--tasks", "umaze", "--methods", "cmd1"];
            let arguments = Program::try_parse_from([&start, words].concat()).unwrap().arguments;
            let data = TaskData::new(arguments.data, arguments.recipe, None);
            let jobs = jobs(&arguments, &arguments.tasks, &data).unwrap();
            let settings = jobs[0].settings.clone();
            let scale = settings.to_toml().contains("scale = true");
            let MethodSettings::Cmd1(cmd1) = settings.method else { unreachable!() };
            (scale, cmd1)
        };
        let (scale, code) = settings(&["--preset", "half"]);
        assert_eq!((scale, code.contrastive.divisor), (false, 8.0));
        assert!(settings(&["--preset", "small"]).0);
        assert!(settings(&["--preset", "half", "--states", "scaled"]).0);
        let (_, text) = settings(&["--preset", "half", "--settings", "text", "--contrast", "cpc"]);
        assert_eq!(text.contrastive.divisor, 1.0);
        assert_eq!(text.contrastive.loss, cm_contrastive::ContrastiveLoss::CPC);
        assert_eq!(text.quasimetric.network.hidden, [512; 4]);
        assert_ne!(text.actor, code.actor);
        let crl = Preset::Half.method(Method::Crl, Origin::Text).unwrap();
        let MethodSettings::Crl(crl) = crl else { unreachable!() };
        assert_eq!((crl.twin, crl.critic.repr_dim), (true, 16));
        assert_eq!(crl.critic.network.hidden, [512; 4]);
        let refused = Program::try_parse_from(["x", "--small", "--settings", "text"]).unwrap();
        let data = TaskData::new(refused.arguments.data, refused.arguments.recipe, None);
        let error = jobs(&refused.arguments, &Task::ALL, &data).unwrap_err().to_string();
        assert!(error.contains("`small` has settings of its own"), "{error}");
    }

    #[test]
    fn runs_of_other_settings_are_refused_before_anything_is_generated() {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().to_str().unwrap();
        let words = ["x", "--tasks", "umaze", "--methods", "gcbc", "--seeds", "2", "--out", out];
        let arguments = Program::try_parse_from(words).unwrap().arguments;
        let data = TaskData::new(arguments.data, arguments.recipe, None);
        let other = &jobs(&arguments, &arguments.tasks, &data).unwrap()[1];
        assert_refused(other, || run(&arguments, Device::Cpu));
    }
}
