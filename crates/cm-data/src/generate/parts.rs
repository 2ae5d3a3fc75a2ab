//! Episodes, collected on all cores and kept in parts, so that little is lost when the work is cut
//! off.

use std::path::{Path, PathBuf};

use cm_envs::ant_maze::{ACTION, CellRule, Collected, Collector, Guide, Recipe, STATE, Task};
use cm_envs::mujoco::Mujoco;
use cm_random::Stream;
use cm_replay::Dataset;
use cm_replay::store::{StoreWriter, TrajectoryRows};
use rayon::prelude::*;

use super::GenerateSettings;
use super::plan::Plan;
use crate::expert::Expert;
use crate::progress::Stage;
use crate::{Error, Progress, Result, Unit, output};

/// Episodes in a part.
const EPISODES: usize = 8;
/// The further arrays of a data set and their widths.
const EXTRAS: [(&str, usize); 4] =
    [("rewards", 1), ("infos/goal", 2), ("infos/qpos", QPOS), ("infos/qvel", STATE - QPOS)];
const QPOS: usize = 15;

/// The folder of parts of an unfinished data set.
pub(super) struct Parts {
    folder: PathBuf,
    plan: Plan,
    task: Task,
    recipe: Recipe,
    cells: CellRule,
}

impl Parts {
    /// Beside `output`; parts of the same plan that are there already are kept.
    pub(super) fn open(output: &Path, plan: &Plan, settings: &GenerateSettings) -> Result<Self> {
        let folder = output.with_extension("parts");
        output::make_folder(&folder)?;
        let path = folder.join("plan.toml");
        match Plan::load(&path)? {
            None => plan.save(&path, None)?,
            Some(found) => plan.ensure_same(&found, &folder, "holds unfinished data of")?,
        }
        let GenerateSettings { task, recipe, cells, .. } = *settings;
        Ok(Self { folder, plan: plan.clone(), task, recipe, cells })
    }

    /// Collects what is missing, on `threads` threads (0: all cores).
    pub(super) fn collect(
        &self,
        mujoco: &Mujoco,
        expert: &Expert,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<()> {
        let guide = Guide::new(self.task.maze(), self.recipe, self.cells, self.plan.noise)?;
        let collector = Collector::new(mujoco, self.task, self.recipe, guide, self.plan.seed)?;
        let missing: Vec<_> = (0..self.count()).filter(|&part| !self.path(part).exists()).collect();
        let total = self.plan.transitions as u64;
        let left: u64 = missing.iter().map(|&part| self.rows(part) as u64).sum();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let stage = Stage::begin(progress, &self.plan.task, Unit::Rows, total - left, Some(total));
        pool.install(|| {
            missing
                .par_iter()
                .with_max_len(1)
                .try_for_each(|&part| self.collect_part(part, &collector, expert, &stage))
        })
    }

    /// Joins all parts in the file `output`.
    pub(super) fn join(&self, output: &Path) -> Result<()> {
        let mut writer = StoreWriter::create(output, STATE, ACTION, &EXTRAS)?;
        for part in 0..self.count() {
            let data = Dataset::load(self.path(part))?;
            for trajectory in 0..data.trajectories() {
                let rows = data.trajectory(trajectory);
                let extras: Vec<_> = EXTRAS
                    .iter()
                    .filter_map(|(name, _)| Some(data.extras().get(*name)?.numbers(rows.clone())))
                    .collect();
                let extras: Vec<&[f32]> = extras.iter().map(AsRef::as_ref).collect();
                writer.push(TrajectoryRows {
                    observations: &data.observations().numbers(rows.clone()),
                    actions: &data.actions().numbers(rows),
                    extras: &extras,
                })?;
            }
        }
        Ok(writer.finish()?)
    }

    /// Removes the folder.
    pub(super) fn remove(self) -> Result<()> {
        std::fs::remove_dir_all(&self.folder).map_err(Error::file("remove", &self.folder))
    }

    fn collect_part(
        &self,
        part: usize,
        collector: &Collector,
        expert: &Expert,
        stage: &Stage<'_>,
    ) -> Result<()> {
        let mut writer = StoreWriter::create(self.path(part), STATE, ACTION, &EXTRAS)?;
        for number in self.episodes(part) {
            let policy = |input: &_, random: &mut Stream, action: &mut _| {
                expert.walk(self.recipe, input, random, action);
            };
            let rows = self.rows_of(number);
            let episode = collector
                .collect(number as u64, rows, policy)
                .map_err(|cause| Error::Episode { number, cause })?;
            push(&mut writer, &episode)?;
            stage.advance(rows as u64);
        }
        Ok(writer.finish()?)
    }

    fn count(&self) -> usize {
        self.all_episodes().div_ceil(EPISODES)
    }

    fn all_episodes(&self) -> usize {
        self.plan.transitions.div_ceil(self.recipe.rows(self.task))
    }

    fn episodes(&self, part: usize) -> std::ops::Range<usize> {
        part * EPISODES..((part + 1) * EPISODES).min(self.all_episodes())
    }

    fn rows(&self, part: usize) -> usize {
        self.episodes(part).map(|episode| self.rows_of(episode)).sum()
    }

    /// Rows of an episode: all but the last have the same number.
    fn rows_of(&self, episode: usize) -> usize {
        let rows = self.recipe.rows(self.task);
        (self.plan.transitions - episode * rows).min(rows)
    }

    fn path(&self, part: usize) -> PathBuf {
        self.folder.join(format!("{part:05}.cmdata"))
    }
}

fn push(writer: &mut StoreWriter, episode: &Collected) -> Result<()> {
    let states = || episode.next_states.chunks_exact(STATE);
    let goals = episode.goal.repeat(states().len());
    let qpos: Vec<f32> = states().flat_map(|state| &state[..QPOS]).copied().collect();
    let qvel: Vec<f32> = states().flat_map(|state| &state[QPOS..]).copied().collect();
    Ok(writer.push(TrajectoryRows {
        observations: &episode.observations,
        actions: &episode.actions,
        extras: &[&episode.rewards, &goals, &qpos, &qvel],
    })?)
}
