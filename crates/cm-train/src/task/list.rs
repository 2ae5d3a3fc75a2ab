//! A list of environments, which reads, writes and compares settings that may be any one's of it.
//!
//! The list is a type, so that each environment is read straight from the file: errors know the
//! line.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::{Environment, EnvironmentKind, TaskSettings};

/// `(first, rest)`, or `()`, the empty list.
pub(super) trait List {
    /// The settings under `key`, whose value comes next; none if no environment has this key.
    fn read<'de, A: MapAccess<'de>>(
        key: &str,
        map: &mut A,
    ) -> Result<Option<TaskSettings>, A::Error>;

    /// A map from the environment's key to its settings.
    fn write<S: Serializer>(task: &TaskSettings, serializer: S) -> Result<S::Ok, S::Error>;

    /// Whether two are the same settings of the same environment.
    fn equal(a: &TaskSettings, b: &TaskSettings) -> bool;

    /// Appends a description of each environment.
    fn add_kinds(kinds: &mut Vec<EnvironmentKind>);
}

impl<E, L> List for (E, L)
where
    E: Environment + PartialEq + Serialize + DeserializeOwned,
    L: List,
{
    fn read<'de, A: MapAccess<'de>>(
        key: &str,
        map: &mut A,
    ) -> Result<Option<TaskSettings>, A::Error> {
        if key == E::key() {
            map.next_value::<E>().map(|environment| Some(environment.into()))
        } else {
            L::read(key, map)
        }
    }

    fn write<S: Serializer>(task: &TaskSettings, serializer: S) -> Result<S::Ok, S::Error> {
        match task.get::<E>() {
            Some(environment) => serializer.collect_map([(E::key(), environment)]),
            None => L::write(task, serializer),
        }
    }

    fn equal(a: &TaskSettings, b: &TaskSettings) -> bool {
        match (a.get::<E>(), b.get::<E>()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => L::equal(a, b),
            _ => false,
        }
    }

    fn add_kinds(kinds: &mut Vec<EnvironmentKind>) {
        kinds.push(EnvironmentKind::of::<E>());
        L::add_kinds(kinds);
    }
}

impl List for () {
    fn read<'de, A: MapAccess<'de>>(_: &str, _: &mut A) -> Result<Option<TaskSettings>, A::Error> {
        Ok(None)
    }

    fn write<S: Serializer>(task: &TaskSettings, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom(format!("not an environment of the list: {task:?}")))
    }

    fn equal(_: &TaskSettings, _: &TaskSettings) -> bool {
        false
    }

    fn add_kinds(_: &mut Vec<EnvironmentKind>) {}
}

/// Reads a map with the key of one environment of a list.
pub(super) struct ReadOneOf<L>(PhantomData<L>);

impl<L: List> ReadOneOf<L> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }

    /// The keys there are, as in a message.
    fn keys() -> String {
        let mut kinds = Vec::new();
        L::add_kinds(&mut kinds);
        kinds.iter().map(|kind| format!("`{}`", kind.key)).collect::<Vec<_>>().join(", ")
    }
}

impl<'de, L: List> Visitor<'de> for ReadOneOf<L> {
    type Value = TaskSettings;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a table of one of {}", Self::keys())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TaskSettings, A::Error> {
        let Some(key) = map.next_key::<String>()? else {
            return Err(A::Error::custom(format!("expected one of {}, found none", Self::keys())));
        };
        let Some(task) = L::read(&key, &mut map)? else {
            let keys = Self::keys();
            return Err(A::Error::custom(format!(
                "no environment `{key}`, expected one of {keys}"
            )));
        };
        match map.next_key::<String>()? {
            None => Ok(task),
            Some(other) => Err(A::Error::custom(format!(
                "expected one environment, found `{key}` and `{other}`"
            ))),
        }
    }
}
