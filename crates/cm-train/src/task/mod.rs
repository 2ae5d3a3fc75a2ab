//! Where a run's data comes from and where its policy acts.
//!
//! An environment is one file of this folder and one place in [`All`].

mod ant_maze;
mod data;
mod environment;
mod list;
mod maze_data;
mod og_maze;
mod point_maze;
mod world;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use cm_learner::Dimensions;
use cm_replay::Dataset;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::ant_maze::AntMazeTask;
pub use self::data::DataTask;
use self::environment::Environment;
pub use self::environment::EnvironmentKind;
use self::list::{List, ReadOneOf};
pub use self::og_maze::OgMazeTask;
pub use self::point_maze::PointMazeTask;
pub use self::world::{Act, World};
use crate::{Error, Method, Result, RunSettings, Scaling};

/// Every environment, in the order of messages and help texts.
type All = (PointMazeTask, (AntMazeTask, (OgMazeTask, (DataTask, ()))));

/// Which task, with its settings: in TOML a table of the environment's key, `[task.point-maze]`.
///
/// ```
/// use cm_train::{DataTask, PointMazeTask, TaskSettings};
///
/// let task = TaskSettings::from(PointMazeTask::default());
/// assert_eq!(task.get::<PointMazeTask>().unwrap().world.states, 20_000);
/// assert!(task.get::<DataTask>().is_none());
/// ```
#[derive(Clone)]
pub struct TaskSettings(Arc<dyn Environment>);

/// A task made ready: its data read or mapped, its world built.
#[derive(Clone, Debug)]
pub struct Task {
    /// What is learned from, scaled.
    pub data: Arc<Dataset>,
    /// Sizes of states, actions and goals.
    pub dimensions: Dimensions,
    /// How the data was brought to size.
    pub scaling: Scaling,
    /// Where the policy acts; nowhere if only data was given.
    pub world: Option<Arc<dyn World>>,
}

impl Task {
    /// Where the policy acts, or an error if there is no such place.
    pub fn world(&self) -> Result<&dyn World> {
        self.world.as_deref().ok_or(Error::NoEnvironment)
    }
}

impl TaskSettings {
    /// The settings, if they are this environment's.
    pub fn get<E: Environment>(&self) -> Option<&E> {
        let any: &dyn std::any::Any = &*self.0;
        any.downcast_ref()
    }

    /// How this method is trained in it unless one says otherwise.
    pub fn preset(&self, method: Method) -> RunSettings {
        self.0.preset(method)
    }

    /// Which of a state's coordinates are the goal a policy sees.
    pub(crate) fn goal_columns(&self, states: usize) -> Range<usize> {
        self.0.goal_columns(states)
    }

    /// The seed of data that is collected; data from a file has none.
    pub fn set_data_seed(&mut self, seed: u64) {
        if let Some(changed) = self.0.with_data_seed(seed) {
            *self = changed;
        }
    }

    /// What it is called in messages: its name behind `--env`, or the file of its data.
    pub fn describe(&self) -> String {
        self.0.describe()
    }

    /// Makes the world, collects or reads the data.
    pub fn open(&self) -> Result<Task> {
        self.0.open()
    }
}

impl<E: Environment> From<E> for TaskSettings {
    fn from(environment: E) -> Self {
        Self(Arc::new(environment))
    }
}

impl fmt::Debug for TaskSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl PartialEq for TaskSettings {
    fn eq(&self, other: &Self) -> bool {
        All::equal(self, other)
    }
}

impl Serialize for TaskSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        All::write(self, serializer)
    }
}

impl<'de> Deserialize<'de> for TaskSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadOneOf::<All>::new())
    }
}

impl EnvironmentKind {
    /// Every environment there is.
    pub fn all() -> Vec<Self> {
        let mut kinds = Vec::new();
        All::add_kinds(&mut kinds);
        kinds
    }
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunSettings, String> {
        let before = RunSettings::plane(Method::Gcbc).to_toml();
        let (start, rest) = before.split_once("[task.").unwrap();
        let (_, end) = rest.split_once("[method.").unwrap();
        RunSettings::from_toml(&format!("{start}{text}\n[method.{end}"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_environment_is_read_back_from_its_own_table() {
        let point = PointMazeTask::default();
        let ant =
            AntMazeTask { task: "antmaze-umaze-v2".into(), file: "a.cmdata".into(), scale: false };
        let data = DataTask { file: "walks.csv".into(), goal: Some([0, 2]), scale: true };
        let og = OgMazeTask { task: "antmaze-large-stitch-v0".into(), file: "b.npz".into() };
        let tasks = [TaskSettings::from(point), ant.into(), og.into(), data.into()];
        for (index, task) in tasks.iter().enumerate() {
            let settings = task.preset(Method::Cmd1);
            assert_eq!(settings.task, *task);
            let text = settings.to_toml();
            let kind = &EnvironmentKind::all()[index];
            assert!(text.contains(&format!("[task.{}", kind.key)), "{text}");
            assert_eq!(RunSettings::from_toml(&text).unwrap(), settings);
            let same = tasks.iter().filter(|&other| other == task).count();
            assert_eq!(same, 1);
        }
    }

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_unknown_is_refused() {
        assert_eq!(read("[task.point-maze]").unwrap(), RunSettings::plane(Method::Gcbc));
        let refused = |text: &str, wanted: &[&str]| {
            let message = read(text).unwrap_err();
            assert!(wanted.iter().all(|part| message.contains(part)), "{text}: {message}");
        };
        refused("[task.point-maze]\nwrld = 3", &["wrld", "world"]);
        refused("[task.point-maze.world]\nstates = \"x\"", &["states = \"x\""]);
        refused("[task.maze]", &["maze", "`point-maze`", "`ant-maze`", "`data`"]);
        refused("[task.data]", &["file"]);
        refused("[task.point-maze]\n[task.data]\nfile = \"x\"", &["point-maze", "data", "one"]);
        refused("[task]", &["point-maze"]);
    }

    #[test]
    fn only_data_that_is_collected_has_a_seed() {
        let mut task = TaskSettings::from(PointMazeTask::default());
        task.set_data_seed(7);
        assert_eq!(task.get::<PointMazeTask>().unwrap().data.seed, 7);
        let data =
            TaskSettings::from(DataTask { file: "walks.csv".into(), goal: None, scale: true });
        let mut seeded = data.clone();
        seeded.set_data_seed(7);
        assert_eq!(seeded, data);
    }
}
