//! `--on slurm`: all runs as one job array.

mod command;
mod queue;
mod script;
mod settings;
mod submission;
mod task;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use cm_train::{Device, Job, job_groups};

pub(crate) use self::settings::{SlurmFlags, SlurmSettings};
pub(crate) use self::task::{TaskArguments, run as task};

use self::command::{call, is_forgotten};
use self::script::{Script, quoted};
use self::submission::{Jobs, Submission, Tasks};
use super::Sweep;
use super::engine::{Engine, Place};
use super::folder::SweepLock;
use super::runs::PlannedRun;
use super::status::{RunStatus, State};

const LIMIT: Duration = Duration::from_secs(120);

/// The cluster that `sbatch` on this machine belongs to.
pub(super) struct Slurm {
    settings: SlurmSettings,
}

impl Slurm {
    pub(super) fn new(settings: &SlurmSettings) -> Self {
        Self { settings: settings.clone() }
    }

    /// Hands the array to Slurm, and a job that writes the report when it has ended.
    fn submit(&self, sweep: &Sweep, submission: &Submission, count: usize) -> anyhow::Result<Jobs> {
        let name = sweep.plan.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let log = |file: &str| -> anyhow::Result<String> {
            let logs = std::path::absolute(submission.logs())?;
            // Slurm has its own use for percent signs.
            Ok(format!("--output={}/{file}", logs.display().to_string().replace('%', "%%")))
        };
        let limit = self.settings.at_once.map(|most| format!("%{most}")).unwrap_or_default();
        let mut array = vec![
            "--parsable".to_owned(),
            format!("--job-name={name}"),
            format!("--array=0-{}{limit}", count - 1),
            log("%a.log")?,
            "--open-mode=append".to_owned(),
            "--requeue".to_owned(),
            format!("--signal=B:USR1@{}", self.settings.warning()),
        ];
        array.extend(self.settings.of_tasks(sweep.plan.device));
        array.push(submission.script_file().display().to_string());
        let array = job_number(&call("sbatch", &array, LIMIT)?)?;
        let program = std::env::current_exe()?;
        let plan = sweep.plan.elsewhere()?;
        let out = std::path::absolute(&sweep.plan.out)?;
        let text = |path: &Path| quoted(&path.display().to_string());
        let line = format!("{} sweep report {} --out {}", text(&program), text(&plan), text(&out));
        let setup = self.settings.setup.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut report = vec![
            "--parsable".to_owned(),
            format!("--job-name={name}-report"),
            format!("--dependency=afterany:{array}"),
            log("report.log")?,
        ];
        report.extend(self.settings.of_site());
        report.push(format!("--wrap={setup}{line}"));
        let jobs = Jobs { array, report: None };
        // The array is Slurm's already; a sweep without this file would hand it over twice.
        submission.write_jobs(jobs)?;
        match call("sbatch", &report, LIMIT).and_then(|text| job_number(&text)) {
            Ok(number) => {
                let jobs = Jobs { report: Some(number), ..jobs };
                submission.write_jobs(jobs)?;
                Ok(jobs)
            }
            Err(error) => {
                eprintln!("warning: no job will write the report: {error:#}");
                Ok(jobs)
            }
        }
    }

    fn submitted(sweep: &Sweep) -> anyhow::Result<Vec<(Submission, Jobs)>> {
        let mut found = Vec::new();
        for submission in Submission::all(&sweep.folder) {
            if let Some(jobs) = submission.jobs()? {
                found.push((submission, jobs));
            }
        }
        Ok(found)
    }
}

impl Engine for Slurm {
    fn start(&self, sweep: &Sweep, missing: &[&PlannedRun], lock: SweepLock) -> anyhow::Result<()> {
        self.settings.check().with_context(|| sweep.plan.file.display().to_string())?;
        let _ = std::fs::remove_file(sweep.folder.cancel_file());
        let packed = pack(missing, sweep.plan.device, self.settings.pack(sweep.plan.device));
        let tasks = Tasks {
            device: sweep.plan.device.to_string(),
            cpus: self.settings.cpus.unwrap_or(1),
            retries: sweep.plan.retries,
            runs: packed,
        };
        let submission = Submission::create(&sweep.folder, &tasks, missing)?;
        let script = Script {
            settings: &self.settings,
            program: &std::env::current_exe()?,
            out: &std::path::absolute(&sweep.plan.out)?,
            submission: &std::path::absolute(&submission.path)?,
            number: submission.number,
            retries: sweep.plan.retries,
        };
        let handed = cm_files::replace(submission.script_file(), script.text())
            .map_err(anyhow::Error::from)
            .and_then(|()| self.submit(sweep, &submission, tasks.runs.len()));
        let jobs = match handed {
            Ok(jobs) => jobs,
            Err(error) => {
                if submission.jobs()?.is_none() {
                    let _ = std::fs::remove_dir_all(&submission.path);
                }
                return Err(error);
            }
        };
        drop(lock);
        println!(
            "job {}: {} runs in {} tasks; logs in {}",
            jobs.array,
            missing.len(),
            tasks.runs.len(),
            submission.logs().display()
        );
        println!("cm sweep status {}", sweep.plan.file.display());
        Ok(())
    }

    fn places(&self, sweep: &Sweep) -> anyhow::Result<BTreeMap<String, Place>> {
        let submitted = Self::submitted(sweep)?;
        if submitted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let jobs = submitted.iter().map(|(_, jobs)| jobs.array).collect::<Vec<_>>();
        let active = queue::active(&jobs)?;
        let mut places = BTreeMap::new();
        for (submission, jobs) in &submitted {
            let mine = active.iter().filter(|task| task.job == jobs.array).collect::<Vec<_>>();
            if mine.is_empty() {
                continue;
            }
            let tasks = submission.tasks()?;
            for task in mine {
                let running = matches!(task.state.as_str(), "RUNNING" | "COMPLETING");
                let (job, index) = (task.job, task.index);
                let name = format!("{}, task {job}_{index}", task.detail);
                for run in tasks.runs.get(index).into_iter().flatten() {
                    places.insert(run.clone(), Place { running, name: name.clone() });
                }
            }
        }
        Ok(places)
    }

    /// Tasks that wait leave the queue; those that run are asked to stop, which they do with a
    /// checkpoint, and are ended if they do not.
    fn cancel(&self, sweep: &Sweep) -> anyhow::Result<usize> {
        let places = self.places(sweep)?;
        let submitted = Self::submitted(sweep)?;
        let cancel = |arguments: &[String]| match call("scancel", arguments, LIMIT) {
            Err(error) if !is_forgotten(&error) => Err(error),
            _ => Ok(()),
        };
        if places.is_empty() {
            return Ok(0);
        }
        let file = sweep.folder.cancel_file();
        std::fs::write(&file, "").with_context(|| file.display().to_string())?;
        for (_, jobs) in &submitted {
            let report = jobs.report.map(|report| report.to_string());
            report.map_or(Ok(()), |report| cancel(&[report]))?;
            cancel(&["--state=PENDING".to_owned(), jobs.array.to_string()])?;
        }
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(60) && !self.places(sweep)?.is_empty() {
            std::thread::sleep(Duration::from_millis(500));
        }
        submitted.iter().try_for_each(|(_, jobs)| cancel(&[jobs.array.to_string()]))?;
        let _ = std::fs::remove_file(&file);
        Ok(places.len())
    }
}

/// Says of runs that ended without a word how Slurm says their tasks ended.
pub(super) fn explain(sweep: &Sweep, all: &mut [RunStatus<'_>]) {
    let silent = |status: &RunStatus<'_>| {
        matches!(status.state, State::Stopped | State::Waiting) && status.error.is_none()
    };
    if !all.iter().any(silent) {
        return;
    }
    for (submission, jobs) in Slurm::submitted(sweep).unwrap_or_default().iter().rev() {
        let Ok(tasks) = submission.tasks() else { continue };
        for task in queue::ended(jobs.array) {
            let failed = ["FAILED", "OUT_OF_MEMORY", "NODE_FAIL", "TIMEOUT", "BOOT_FAIL"];
            for name in tasks.runs.get(task.index).into_iter().flatten() {
                let found = all.iter_mut().find(|status| status.run.name == *name);
                let Some(status) = found.filter(|status| silent(status)) else { continue };
                if failed.contains(&task.state.as_str()) {
                    status.state = State::Failed;
                }
                let log = submission.logs().join(format!("{}.log", task.index));
                let (state, detail) = (&task.state, &task.detail);
                status.error =
                    Some(format!("Slurm says {state} ({detail}); see {}", log.display()));
            }
        }
    }
}

/// The runs of each task, by name: on a GPU those that can be trained at once, at most `most`.
fn pack(missing: &[&PlannedRun], device: Device, most: usize) -> Vec<Vec<String>> {
    let name = |run: &&PlannedRun| run.name.clone();
    if device == Device::Cpu {
        return missing.chunks(most).map(|runs| runs.iter().map(name).collect()).collect();
    }
    let jobs = missing.iter().map(|run| run.job.clone()).collect::<Vec<Job>>();
    let groups = job_groups(&jobs, Some(most));
    groups.iter().map(|group| group.iter().map(|&at| name(&missing[at])).collect()).collect()
}

/// `17` or `17;cluster`, as `sbatch --parsable` prints it.
fn job_number(text: &str) -> anyhow::Result<u64> {
    let number = text.trim().split(';').next().unwrap_or_default();
    match number.parse() {
        Ok(number) => Ok(number),
        Err(_) => bail!("sbatch: expected the number of a job, found `{}`", text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use cm_train::{Method, RunSettings};

    use super::*;

    #[test]
    fn seeds_share_a_gpu_and_processors_take_runs_as_they_come() {
        let run = |method: Method, seed| {
            let name = format!("{method}-{seed}");
            let settings = RunSettings::tiny_plane(method, seed);
            let job = Job { folder: name.clone().into(), settings };
            PlannedRun { name, values: Vec::new(), job }
        };
        let (a, b) = (Method::Cmd1, Method::Gcbc);
        let runs = [run(a, 0), run(b, 0), run(a, 1), run(b, 1), run(a, 2)];
        let runs = runs.iter().collect::<Vec<_>>();
        let names = |device: &str, most| {
            let packed = pack(&runs, device.parse().unwrap(), most);
            packed.iter().map(|task| task.join(" ")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names("cuda", 2), "cmd1-0 cmd1-1, gcbc-0 gcbc-1, cmd1-2");
        assert_eq!(names("cuda", 8), "cmd1-0 cmd1-1 cmd1-2, gcbc-0 gcbc-1");
        assert_eq!(names("cpu", 2), "cmd1-0 gcbc-0, cmd1-1 gcbc-1, cmd1-2");
    }

    #[test]
    fn sbatch_s_answer_is_a_number() {
        assert_eq!(job_number("17\n").unwrap(), 17);
        assert_eq!(job_number("17;east\n").unwrap(), 17);
        assert!(job_number("queued").unwrap_err().to_string().contains("`queued`"));
    }
}
