//! What an environment says of itself.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use toml::Table;

use super::{Task, TaskSettings};
use crate::{Method, Result, RunSettings};

/// The settings of an environment, and what follows from them.
///
/// The value is the table `[task.KEY]` of a run's settings. The trait is not exported: settings are
/// read by [`All`](super::All), so that only what is in that list can be a task.
pub trait Environment: Any + fmt::Debug + Send + Sync {
    /// The key of its table.
    fn key() -> &'static str
    where
        Self: Sized;

    /// What it is called behind `--env`: a name for each of its tasks.
    fn names() -> Vec<&'static str>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// The settings that a name behind `--env` stands for, shorter forms of
    /// [`names`](Self::names) among them; none if it is no name of this environment.
    fn named(name: &str) -> Option<Table>
    where
        Self: Sized,
    {
        Self::names().contains(&name).then(Table::new)
    }

    /// Whether its data comes from a file, which is the setting `file`.
    fn has_file() -> bool
    where
        Self: Sized;

    /// How a method is trained in it unless one says otherwise.
    fn preset(&self, method: Method) -> RunSettings;

    /// Which of a state's coordinates are the goal a policy sees.
    fn goal_columns(&self, states: usize) -> Range<usize>;

    /// The same with another seed of the data; none if the data is not collected.
    fn with_data_seed(&self, seed: u64) -> Option<TaskSettings> {
        let _ = seed;
        None
    }

    /// What it is called in messages: its name behind `--env`, or the file of its data.
    fn describe(&self) -> String;

    /// Makes the world, collects or reads the data.
    fn open(&self) -> Result<Task>;
}

/// An environment as a command line sees it, before there are settings.
///
/// ```
/// use cm_train::EnvironmentKind;
///
/// let kind = EnvironmentKind::of_name("antmaze-umaze").unwrap();
/// assert_eq!(kind.key, "ant-maze");
/// assert!(kind.has_file && kind.names.contains(&"antmaze-umaze-v2"));
/// assert!(EnvironmentKind::of_name("chess").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct EnvironmentKind {
    /// The key of its table in a run's settings.
    pub key: &'static str,
    /// What it is called behind `--env`: a name for each of its tasks.
    pub names: Vec<&'static str>,
    /// Whether its data comes from a file, which is the setting `file`.
    pub has_file: bool,
    named: fn(&str) -> Option<Table>,
}

impl EnvironmentKind {
    pub(super) fn of<E: Environment>() -> Self {
        Self { key: E::key(), names: E::names(), has_file: E::has_file(), named: E::named }
    }

    /// That whose table has this key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::all().into_iter().find(|kind| kind.key == key)
    }

    /// That which has this name behind `--env`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|kind| kind.named(name).is_some())
    }

    /// The settings that a name behind `--env` stands for, shorter forms of the `names` among them;
    /// none if it is no name of this environment.
    pub fn named(&self, name: &str) -> Option<Table> {
        (self.named)(name)
    }
}
