//! Data of OGBench's mazes by OGBench's recipe.

mod figures;
mod npz;
mod parts;
mod plan;

use std::path::{Path, PathBuf};

use cm_envs::mujoco::Mujoco;
use cm_envs::ogbench::{Agent, OgTask};
use cm_replay::Dataset;

pub use self::figures::OgFigures;
use self::parts::Parts;
use self::plan::Plan;
use crate::expert::{Expert, ExpertFile};
use crate::files::check_extension;
use crate::output::Turn;
use crate::progress::Stage;
use crate::{Error, Progress, Result, output};

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct OgSettings {
    /// The body, the maze and the recipe.
    pub task: OgTask,
    /// The same seed gives the same data, on any number of threads.
    pub seed: u64,
    /// Episodes to train on; a tenth as many more are for validation.
    pub episodes: usize,
    /// The policy that walks; the one that is shipped if none is named. Of the ant alone.
    pub expert: Option<ExpertFile>,
    /// Threads to use; 0 for all cores.
    pub threads: usize,
    /// Whether to write OGBench's npz files too.
    pub npz: bool,
}

impl OgSettings {
    /// As much as OGBench has.
    ///
    /// ```
    /// use cm_data::OgSettings;
    ///
    /// let task = "antmaze-large-explore-v0".parse()?;
    /// let small = OgSettings { episodes: 100, ..OgSettings::new(task) };
    /// assert_eq!((small.seed, OgSettings::new(task).episodes), (0, 10_000));
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn new(task: OgTask) -> Self {
        let episodes = task.episodes();
        Self { task, seed: 0, episodes, expert: None, threads: 0, npz: false }
    }
}

/// The files of a generated data set.
#[derive(Clone, Debug, PartialEq)]
pub struct OgGenerated {
    /// To train on, and what is in it; none if it was there already.
    pub training: (PathBuf, Option<OgFigures>),
    /// To validate with; nothing of fewer than ten episodes.
    pub validation: Option<(PathBuf, Option<OgFigures>)>,
    /// The same in OGBench's form, where that was asked for.
    pub npz: Vec<PathBuf>,
}

/// What the file of generated data of `task` is called.
///
/// ```
/// let task = "pointmaze-giant-stitch-v0".parse()?;
/// let name = cm_data::og_generated_name(task);
/// assert_eq!(name, "pointmaze-giant-stitch-v0-generated.cmdata");
/// # Ok::<(), cm_envs::Error>(())
/// ```
pub fn og_generated_name(task: OgTask) -> String {
    format!("{task}-generated.cmdata")
}

/// Generates a data set into the file `output`, and what is for validation beside it, resuming what
/// was cut off. What is there already is neither made again nor, if its settings are others,
/// overwritten.
pub fn generate_ogbench(
    settings: &OgSettings,
    output: &Path,
    progress: Progress<'_>,
) -> Result<OgGenerated> {
    check_extension(output)?;
    let OgSettings { task, seed, episodes, .. } = *settings;
    if episodes == 0 {
        let (expected, found) = ("at least 1".to_owned(), "0".to_owned());
        return Err(Error::Setting { setting: "episodes", expected, found });
    }
    if task.agent == Agent::Point && settings.expert.is_some() {
        let (expected, found) = ("none for a point".to_owned(), "one".to_owned());
        return Err(Error::Setting { setting: "expert", expected, found });
    }
    output::make_parent(output)?;
    let mujoco = Mujoco::find()?;
    let expert = match task.agent {
        Agent::Point => None,
        Agent::Ant => Some(Expert::open(settings.expert.as_ref().unwrap_or(&ExpertFile::Clean))?),
    };
    let plan = |first: usize, episodes: usize| Plan {
        task: task.name(),
        seed,
        first: first as u64,
        episodes: episodes as u64,
        expert_sha256: expert.as_ref().map(|expert| expert.sha256().to_owned()),
        mujoco: mujoco.version().to_string(),
    };
    let make = |plan: &Plan, file: &Path| -> Result<Option<OgFigures>> {
        let Some(_turn) = Turn::to_make(file, progress, || plan.is_done(file))? else {
            return Ok(None);
        };
        let parts = Parts::open(file, plan, task)?;
        parts.collect(&mujoco, expert.as_ref(), settings.threads, progress)?;
        let _stage = Stage::busy(progress, &format!("writing {}", file.display()));
        parts.join(file)?;
        let figures = OgFigures::of(&Dataset::open(file)?, task)?;
        plan.save(&plan::beside(file), Some(&figures))?;
        parts.remove()?;
        Ok(Some(figures))
    };
    let training = (output.to_owned(), make(&plan(0, episodes), output)?);
    let validation = match episodes / 10 {
        0 => None,
        more => {
            let file = validation_file(output);
            let found = make(&plan(episodes, more), &file)?;
            Some((file, found))
        }
    };
    let mut npz = Vec::new();
    if settings.npz {
        for file in [Some(&training), validation.as_ref()].into_iter().flatten() {
            let path = file.0.with_extension("npz");
            let _stage = Stage::busy(progress, &format!("writing {}", path.display()));
            npz::write(&Dataset::open(&file.0)?, &path)?;
            npz.push(path);
        }
    }
    Ok(OgGenerated { training, validation, npz })
}

/// The file for validation beside one to train on: `-val` before the ending.
fn validation_file(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}-val.cmdata"))
}
