//! What was handed to Slurm: a folder for each job array.

use std::path::{Path, PathBuf};

use anyhow::Context;
use cm_train::{Device, Job, RunSettings};
use serde::{Deserialize, Serialize};

use super::super::folder::SweepFolder;
use super::super::runs::PlannedRun;

/// The folder `.sweep/submission-N`.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub(super) path: PathBuf,
    pub(super) number: u32,
}

/// What each task trains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Tasks {
    pub(super) device: String,
    pub(super) cpus: u32,
    pub(super) retries: u32,
    /// Runs by name, a list for each task.
    pub(super) runs: Vec<Vec<String>>,
}

/// What Slurm calls it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Jobs {
    pub(super) array: u64,
    pub(super) report: Option<u64>,
}

impl Submission {
    pub(super) fn of(folder: &SweepFolder, number: u32) -> Self {
        Self { path: folder.path().join(format!("submission-{number}")), number }
    }

    /// All there are, the oldest first.
    pub(super) fn all(folder: &SweepFolder) -> Vec<Self> {
        let mut all = (1..).map(|number| Self::of(folder, number));
        let mut found = Vec::new();
        while let Some(next) = all.next().filter(|next| next.path.exists()) {
            found.push(next);
        }
        found
    }

    /// The next one, with everything its tasks read.
    pub(super) fn create(
        folder: &SweepFolder,
        tasks: &Tasks,
        runs: &[&PlannedRun],
    ) -> anyhow::Result<Self> {
        let number = Self::all(folder).len() as u32 + 1;
        let new = Self::of(folder, number);
        for inner in [new.logs(), new.path.join("settings"), new.path.join("deaths")] {
            std::fs::create_dir_all(&inner)
                .with_context(|| format!("{}: could not be made", inner.display()))?;
        }
        for run in runs {
            cm_files::replace(new.settings_file(&run.name), run.job.settings.to_toml())?;
        }
        cm_files::replace(new.tasks_file(), serde_json::to_vec_pretty(tasks)?)?;
        Ok(new)
    }

    pub(super) fn tasks(&self) -> anyhow::Result<Tasks> {
        read(&self.tasks_file())
    }

    /// None if Slurm did not take it.
    pub(super) fn jobs(&self) -> anyhow::Result<Option<Jobs>> {
        let file = self.path.join("jobs.json");
        if file.exists() { read(&file).map(Some) } else { Ok(None) }
    }

    pub(super) fn write_jobs(&self, jobs: Jobs) -> anyhow::Result<()> {
        Ok(cm_files::replace(self.path.join("jobs.json"), serde_json::to_vec(&jobs)?)?)
    }

    /// A run as its task trains it.
    pub(super) fn run(&self, out: &Path, name: &str) -> anyhow::Result<PlannedRun> {
        let settings = RunSettings::load(&self.settings_file(name))?;
        let job = Job { settings, folder: out.join(name) };
        Ok(PlannedRun { name: name.to_owned(), values: Vec::new(), job })
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    pub(super) fn script_file(&self) -> PathBuf {
        self.path.join("tasks.sh")
    }

    fn tasks_file(&self) -> PathBuf {
        self.path.join("tasks.json")
    }

    fn settings_file(&self, run: &str) -> PathBuf {
        self.path.join("settings").join(format!("{run}.toml"))
    }
}

impl Tasks {
    pub(super) fn device(&self) -> anyhow::Result<Device> {
        Ok(self.device.parse()?)
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let name = || file.display().to_string();
    serde_json::from_slice(&std::fs::read(file).with_context(name)?).with_context(name)
}
