//! The data that the runs need: where it is, and how it comes there.

use std::path::{Path, PathBuf};

use cm_data::{Cache, GenerateSettings};
use cm_envs::ant_maze::Task;

use crate::bars::Bars;

/// Which data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Source {
    /// D4RL's own.
    Downloaded,
    /// Made here by D4RL's recipe.
    Generated,
}

impl Source {
    /// As a page says it.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Downloaded => "D4RL's own data",
            Self::Generated => {
                "data generated here by D4RL's recipe, with a walking policy of this project's"
            }
        }
    }
}

/// The files of one source.
pub(super) struct TaskData {
    source: Source,
    /// Where the runs look.
    folder: PathBuf,
    /// Where downloads go.
    cache: Cache,
}

impl TaskData {
    pub(super) fn new(source: Source, folder: Option<&Path>) -> Self {
        let cache = Cache::from_environment();
        let folder = folder.unwrap_or(cache.folder()).to_owned();
        Self { source, folder, cache }
    }

    /// Where the data of `task` is looked for.
    pub(super) fn file(&self, task: Task) -> PathBuf {
        let source = match self.source {
            Source::Downloaded => "downloaded",
            Source::Generated => "generated",
        };
        self.folder.join(format!("{task}-{source}.cmdata"))
    }

    pub(super) fn list(&self, tasks: &[Task]) {
        for &task in tasks {
            let file = self.file(task);
            let state = if file.exists() { "there" } else { "missing" };
            println!("{:<25} {state:<8} {}", task.name(), file.display());
        }
    }

    /// Downloads or generates the data of `task`, unless it is there.
    pub(super) fn get(&self, task: Task) -> anyhow::Result<()> {
        let file = self.file(task);
        if file.exists() {
            return Ok(());
        }
        println!("getting {task}: {}", file.display());
        let bars = Bars::new();
        match self.source {
            Source::Downloaded => {
                let name = task.name();
                cm_data::download_converted(name, &self.cache, &file, &|event| bars.show(event))?;
            }
            Source::Generated => {
                let settings = GenerateSettings::new(task);
                let made = cm_data::generate(&settings, &file, &|event| bars.show(event))?;
                drop(bars);
                crate::commands::data::print_generated(&made);
            }
        }
        Ok(())
    }
}
