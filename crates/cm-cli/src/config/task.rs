//! Which environment the flags and the settings' file choose, and its settings.

use std::path::Path;

use anyhow::{Context, bail};
use cm_train::{EnvironmentKind, TaskSettings};
use toml::{Table, Value};

/// The names that `--env` takes, for a help text: a line for each kind of environment.
pub(crate) fn environments() -> String {
    let mut lines = vec!["Environments:".to_owned()];
    for kind in EnvironmentKind::all() {
        let data = if kind.has_file { ", with --data" } else { "" };
        if !kind.names.is_empty() {
            lines.push(format!("  {}{data}", kind.names.join(", ")));
        }
    }
    lines.join("\n")
}

/// The task that `--env`, `--data` and the settings given make together; flags override the file.
pub(super) fn task(
    env: Option<&str>,
    data: Option<&Path>,
    given: &Table,
) -> anyhow::Result<TaskSettings> {
    let mut task = match given.get("task") {
        None => Table::new(),
        Some(Value::Table(task)) => task.clone(),
        Some(other) => return read(other.clone()),
    };
    let in_file = task.keys().next().cloned();
    let named = env.map(|name| of_name(name).map(|kind| (name, kind))).transpose()?;
    let kind = match (&named, &in_file) {
        (Some((name, kind)), Some(key)) if kind.key != key => {
            bail!("--env {name} and the settings' [task.{key}] exclude each other")
        }
        (Some((_, kind)), _) => Some(kind.clone()),
        (None, Some(key)) => EnvironmentKind::of_key(key),
        (None, None) if data.is_some() => EnvironmentKind::of_key("data"),
        (None, None) => bail!("expected --env NAME, --data FILE or --config FILE"),
    };
    // Reading the task says what is wrong with a key that no environment has.
    let Some(kind) = kind else { return read(Value::Table(task)) };
    let settings = task.entry(kind.key).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(settings) = settings else { return read(Value::Table(task)) };
    settings.extend(named.as_ref().and_then(|(name, kind)| kind.named(name)).unwrap_or_default());
    match (data, &named) {
        (Some(_), Some((name, _))) if !kind.has_file => {
            bail!("--env {name} makes its own data: expected no --data")
        }
        (Some(_), None) if !kind.has_file => {
            bail!("--data and the settings' [task.{}] exclude each other", kind.key)
        }
        (Some(data), _) => {
            settings.insert("file".to_owned(), data.display().to_string().into());
        }
        (None, Some((name, _))) if kind.has_file && !settings.contains_key("file") => {
            bail!("--env {name} needs --data FILE")
        }
        (None, _) => {}
    }
    read(Value::Table(task))
}

fn of_name(name: &str) -> anyhow::Result<EnvironmentKind> {
    EnvironmentKind::of_name(name).with_context(|| {
        let known: Vec<_> =
            EnvironmentKind::all().into_iter().flat_map(|kind| kind.names).collect();
        format!("--env: expected one of {}, found `{name}`", known.join(", "))
    })
}

/// Inside a table of its own, so that errors name the whole key.
fn read(task: Value) -> anyhow::Result<TaskSettings> {
    #[derive(serde::Deserialize)]
    struct Settings {
        task: TaskSettings,
    }
    let settings: Settings = super::parse(&Table::from_iter([("task".to_owned(), task)]))?;
    Ok(settings.task)
}

#[cfg(test)]
mod tests {
    use cm_train::{AntMazeTask, DataTask, PointMazeTask};

    use super::*;

    fn found(env: Option<&str>, data: Option<&str>, given: &str) -> anyhow::Result<TaskSettings> {
        task(env, data.map(Path::new), &toml::from_str(given).unwrap())
    }

    #[test]
    fn flags_override_the_file() {
        let ant = |name: &str, file: &str| {
            let scale = false;
            TaskSettings::from(AntMazeTask { task: name.into(), file: file.into(), scale })
        };
        let (umaze, large) = ("antmaze-umaze-v2", "antmaze-large-play-v2");
        let given = format!("[task.ant-maze]\ntask = \"{umaze}\"\nfile = \"a\"");
        assert_eq!(found(None, None, &given).unwrap(), ant(umaze, "a"));
        assert_eq!(found(None, Some("b"), &given).unwrap(), ant(umaze, "b"));
        assert_eq!(found(Some("antmaze-large-play"), None, &given).unwrap(), ant(large, "a"));
        assert_eq!(found(Some(umaze), Some("b"), "").unwrap(), ant(umaze, "b"));
        let own = found(None, Some("b"), "[task.data]\nfile = \"a\"\nscale = false").unwrap();
        let wanted = DataTask { file: "b".into(), goal: None, scale: false };
        assert_eq!(own, wanted.into());
        assert_eq!(found(Some("pointmaze"), None, "").unwrap(), PointMazeTask::default().into());
    }

    #[test]
    fn refusals_name_what_there_is() {
        let message =
            |env, data, given: &str| format!("{:#}", found(env, data, given).unwrap_err());
        for kind in EnvironmentKind::all() {
            let unknown = message(Some("chess"), None, "");
            assert!(unknown.contains("`chess`"), "{unknown}");
            assert!(kind.names.iter().all(|name| unknown.contains(name)), "{unknown}");
            let unknown = message(None, None, "[task.chess]");
            assert!(unknown.contains("`chess`") && unknown.contains(kind.key), "{unknown}");
        }
        assert!(message(Some("antmaze-umaze"), None, "").contains("needs --data FILE"));
        assert!(message(Some("pointmaze"), Some("a"), "").contains("no --data"));
        let both = message(Some("pointmaze"), None, "[task.data]");
        assert!(both.contains("--env pointmaze and the settings' [task.data]"), "{both}");
        assert!(message(None, Some("a"), "[task.point-maze]").contains("exclude each other"));
        assert!(message(None, None, "task = 3").contains("task"));
        assert!(message(None, None, "[task]\nant-maze = 3").contains("ant-maze"));
        let missing = message(None, None, "[task.ant-maze]\ntask = \"antmaze-umaze-v2\"");
        assert!(missing.contains("file") && missing.contains("task.ant-maze"), "{missing}");
        let key = message(None, None, "[task.point-maze.world]\nstates = \"x\"");
        assert!(key.contains("[task.point-maze.world] states = \"x\":"), "{key}");
        let two = message(None, Some("a"), "[task.data]\n[task.point-maze]");
        assert!(two.contains("one environment"), "{two}");
    }
}
