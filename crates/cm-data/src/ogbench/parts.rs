//! Episodes, collected on all cores and kept in parts, so that little is lost when the work is cut
//! off.

use std::path::{Path, PathBuf};

use cm_envs::mujoco::Mujoco;
use cm_envs::ogbench::{Collected, Collector, OgTask};
use cm_replay::Dataset;
use cm_replay::store::{StoreWriter, TrajectoryRows};
use rayon::prelude::*;

use super::plan::Plan;
use crate::expert::Expert;
use crate::progress::Stage;
use crate::{Error, Progress, Result, Unit, output};

/// Episodes in a part.
const EPISODES: u64 = 8;

/// The folder of parts of an unfinished file.
pub(super) struct Parts {
    folder: PathBuf,
    plan: Plan,
    task: OgTask,
}

impl Parts {
    /// Beside `output`; parts of the same plan that are there already are kept.
    pub(super) fn open(output: &Path, plan: &Plan, task: OgTask) -> Result<Self> {
        let folder = output.with_extension("parts");
        output::make_folder(&folder)?;
        let path = folder.join("plan.toml");
        match Plan::load(&path)? {
            None => plan.save(&path, None)?,
            Some(found) => plan.ensure_same(&found, &folder, "holds unfinished data of")?,
        }
        Ok(Self { folder, plan: plan.clone(), task })
    }

    /// Collects what is missing, on `threads` threads (0: all cores).
    pub(super) fn collect(
        &self,
        mujoco: &Mujoco,
        expert: Option<&Expert>,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<()> {
        let collector = Collector::new(mujoco, self.task, self.plan.seed)?;
        let parts = 0..self.plan.episodes.div_ceil(EPISODES);
        let missing: Vec<_> = parts.filter(|&part| !self.path(part).exists()).collect();
        let rows = self.task.rows() as u64;
        let total = self.plan.episodes * rows;
        let left: u64 = missing.iter().map(|&part| self.numbers(part).count() as u64 * rows).sum();
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
        let mut writer = self.writer(output)?;
        for part in 0..self.plan.episodes.div_ceil(EPISODES) {
            let data = Dataset::load(self.path(part))?;
            for trajectory in 0..data.trajectories() {
                let rows = data.trajectory(trajectory);
                let names = self.extras().map(|(name, _)| name);
                let extras: Vec<_> = names
                    .iter()
                    .filter_map(|name| Some(data.extras().get(*name)?.numbers(rows.clone())))
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
        part: u64,
        collector: &Collector,
        expert: Option<&Expert>,
        stage: &Stage<'_>,
    ) -> Result<()> {
        let mut writer = self.writer(&self.path(part))?;
        let policy = |input: &[f32], action: &mut [f32]| {
            // A point has no policy, an ant's inputs and actions have these sizes.
            if let (Some(expert), Ok(input), Ok(action)) =
                (expert, input.try_into(), action.try_into())
            {
                expert.act(input, action);
            }
        };
        let rows = self.task.rows();
        for number in self.numbers(part) {
            let episode = collector.collect(number, rows, policy);
            let episode =
                episode.map_err(|cause| Error::Episode { number: number as usize, cause })?;
            push(&mut writer, &episode, rows)?;
            stage.advance(rows as u64);
        }
        Ok(writer.finish()?)
    }

    /// The episodes of a part.
    fn numbers(&self, part: u64) -> std::ops::Range<u64> {
        let end = ((part + 1) * EPISODES).min(self.plan.episodes);
        self.plan.first + part * EPISODES..self.plan.first + end
    }

    /// The further arrays and their widths: OGBench's, and where each row's step was meant to lead.
    fn extras(&self) -> [(&'static str, usize); 3] {
        let agent = self.task.agent;
        [("qpos", agent.positions()), ("qvel", agent.velocities()), ("goal", 2)]
    }

    fn writer(&self, path: &Path) -> Result<StoreWriter> {
        let agent = self.task.agent;
        let (observation, action) = (agent.observation_width(), agent.action_width());
        Ok(StoreWriter::create(path, observation, action, &self.extras())?)
    }

    fn path(&self, part: u64) -> PathBuf {
        self.folder.join(format!("{part:05}.cmdata"))
    }
}

fn push(writer: &mut StoreWriter, episode: &Collected, rows: usize) -> Result<()> {
    let mut goals = Vec::with_capacity(2 * rows);
    for (index, (first, goal)) in episode.goals.iter().enumerate() {
        let end = episode.goals.get(index + 1).map_or(rows, |next| next.0.min(rows));
        for _ in *first..end {
            goals.extend(goal.map(|number| number as f32));
        }
    }
    Ok(writer.push(TrajectoryRows {
        observations: &episode.observations,
        actions: &episode.actions,
        extras: &[&episode.positions, &episode.velocities, &goals],
    })?)
}
