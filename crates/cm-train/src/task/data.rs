//! Data from a file: a task of its own, and a part of other environments' tasks.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cm_learner::Dimensions;
use cm_replay::{Dataset, End, Goals, ReadOptions, read};
use serde::{Deserialize, Serialize};

use super::{Environment, Task, World, yes};
use crate::{Error, HeldOut, Method, MethodSettings, ReadOut, Result, RunSettings, Scaling};

/// Trajectories of one's own; there is nothing to evaluate in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataTask {
    /// The file: CSV, npz, safetensors, HDF5 or cmdata.
    pub file: PathBuf,
    /// First and one-beyond-last coordinate of a state that are the goal a policy sees; all if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<[usize; 2]>,
    /// Whether states and actions are brought to size first.
    #[serde(default = "yes")]
    pub scale: bool,
}

impl Environment for DataTask {
    fn key() -> &'static str {
        "data"
    }

    fn has_file() -> bool {
        true
    }

    fn preset(&self, method: Method) -> RunSettings {
        RunSettings { task: self.clone().into(), ..RunSettings::own_data(method, PathBuf::new()) }
    }

    fn goal_columns(&self, states: usize) -> Range<usize> {
        self.goal.map_or(0..states, |[first, end]| first..end)
    }

    fn describe(&self) -> String {
        self.file.display().to_string()
    }

    fn open(&self) -> Result<Task> {
        Task::of_data(Task::read(&self.file)?, self.scale, self, None)
    }
}

impl Task {
    /// The data of a file, with a trajectory of two rows at least.
    pub(super) fn read(file: &Path) -> Result<Dataset> {
        let data = read(file, &ReadOptions::default())?;
        let count = data.trajectories();
        if (0..count).all(|number| data.trajectory(number).len() < 2) {
            let reason = format!("expected a trajectory of two rows or more, found {count} of one");
            return Err(Error::content(file, reason));
        }
        Ok(data)
    }

    /// The data, scaled if `scale`, for an environment whose policies act in `world`.
    pub(super) fn of_data(
        data: Dataset,
        scale: bool,
        environment: &dyn Environment,
        world: Option<Arc<dyn World>>,
    ) -> Result<Self> {
        let (states, actions) = (data.observations().columns(), data.actions().columns());
        let dimensions = Dimensions::new(states, actions, environment.goal_columns(states))?;
        let (scaling, data) = if scale {
            let scaling = Scaling::of(&data);
            let data = scaling.apply(data)?;
            (scaling, data)
        } else {
            (Scaling::none(states, actions), data)
        };
        Ok(Self { data: Arc::new(data), dimensions, scaling, world })
    }
}

impl RunSettings {
    /// A start for trajectories of one's own in `file`: one in ten is held out, and training ends
    /// when the loss on those does not fall any more.
    ///
    /// Goals are later states of the same trajectory, never the state itself: where states are
    /// numbers with many digits, a state is met exactly only at once, and a metric that must be 0
    /// there and not next to it spends itself on that. For CMD, whose metric on states is learned by
    /// contrast, they are as far ahead as if trajectories had no end ([`End::Balance`]); for other
    /// methods they are cut there.
    ///
    /// ```
    /// use std::path::PathBuf;
    /// use cm_train::{Method, ReadOut, RunSettings};
    ///
    /// let settings = RunSettings::own_data(Method::Cmd1, PathBuf::from("walks.csv"));
    /// assert_eq!(settings.read_out, ReadOut::Composed);
    /// assert!(!settings.goals.include_current && settings.held_out.share == 0.1);
    /// ```
    pub fn own_data(method: Method, file: PathBuf) -> Self {
        let end = match method {
            Method::Cmd1 | Method::Cmd2 => End::Balance,
            _ => End::Truncate,
        };
        let read_out = match method {
            Method::Cmd1 | Method::Cmd2 | Method::Qrl | Method::Tmd => ReadOut::Composed,
            _ => ReadOut::DataActions,
        };
        Self {
            steps: 5_000,
            checkpoint_every: 1_000,
            read_out,
            held_out: HeldOut { share: 0.1, every: 250, patience: 4, least: 0.002 },
            observation_noise: 0.0,
            stay_at_goal: false,
            evaluate_every: 0,
            goals: method.goals(Goals { end, ..Goals::geometric(0.9) }, 10),
            task: DataTask { file, goal: None, scale: true }.into(),
            method: MethodSettings::own_data(method),
            ..Self::plane(method)
        }
    }
}
