//! The runs that a plan stands for.

use std::collections::HashMap;

use anyhow::{Context, bail};
use cm_data::Cache;
use cm_train::{EnvironmentKind, Job, Method, RunSettings};
use toml::Value;

use super::plan::{Plan, method};
use super::values::label;
use crate::config::{ConfigArguments, with_keys};

/// Keys that are no settings of their own: they choose the task and the method, or change several
/// settings at once.
const SPECIAL: [&str; 6] = ["task", "data", "method", "seed", "hidden", "learning_rate"];

/// A run of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct PlannedRun {
    /// The name of its folder, made of its values.
    pub(crate) name: String,
    /// What tells it from others of the sweep: keys and values, in the order of the name.
    pub(crate) values: Vec<(String, String)>,
    pub(crate) job: Job,
}

type Combination = Vec<(String, Value)>;

/// Every run of the plan, seed by seed; at least one, no two alike.
pub(crate) fn runs(plan: &Plan) -> anyhow::Result<Vec<PlannedRun>> {
    let named = || plan.file.display().to_string();
    let combinations = combinations(plan).with_context(named)?;
    let keys = short_names(&combinations);
    let mut runs: Vec<PlannedRun> = Vec::new();
    let mut places = HashMap::new();
    for combination in &combinations {
        let values = combination.iter().filter(|(key, _)| key != "data" || is_alone(combination));
        let values = values.map(|(key, value)| (key.clone(), label(value))).collect::<Vec<_>>();
        let parts = values.iter().map(|(key, label)| match keys.get(key) {
            Some(key) => format!("{key}={label}"),
            None => label.clone(),
        });
        let name = match parts.collect::<Vec<_>>().join("-") {
            name if name.is_empty() => "run".to_owned(),
            name => name.trim_start_matches('.').to_owned(),
        };
        let settings = settings(plan, combination)
            .with_context(|| format!("run `{name}`"))
            .with_context(named)?;
        if let Some(earlier) = places.insert(settings.to_toml(), name.clone()) {
            bail!("{}: the runs `{earlier}` and `{name}` have the same settings", named());
        }
        if runs.iter().any(|run| run.name == name) {
            bail!("{}: two runs are called `{name}`, with different settings", named());
        }
        let folder = plan.out.join(&name);
        runs.push(PlannedRun { name, values, job: Job { settings, folder } });
    }
    Ok(runs)
}

/// Whether a file of data is what names the task.
fn is_alone(combination: &Combination) -> bool {
    !combination.iter().any(|(key, _)| key == "task")
}

fn combinations(plan: &Plan) -> anyhow::Result<Vec<Combination>> {
    let mut all: Vec<Combination> = match plan.listed.as_slice() {
        [] => vec![Vec::new()],
        listed => listed.to_vec(),
    };
    // What others depend on first, seeds last: a run's name is read from left to right.
    let mut axes: Vec<_> = plan.axes.iter().collect();
    axes.sort_by_key(|(key, _)| place(key));
    for (key, values) in &axes {
        let mut applied = false;
        let mut more = Vec::new();
        for combination in all {
            if !applies(plan, &combination, key)? {
                more.push(combination);
                continue;
            }
            applied = true;
            more.extend(values.iter().map(|value| {
                let mut longer = combination.clone();
                longer.push((key.clone(), value.clone()));
                longer
            }));
        }
        if !applied {
            bail!("axes.{key}: expected a key of some run's settings, found one of no run's");
        }
        all = more;
    }
    for excluded in &plan.excluded {
        let before = all.len();
        all.retain(|combination| {
            let meant = |(key, values): &(String, Vec<Value>)| {
                combination.iter().any(|(other, value)| other == key && values.contains(value))
            };
            !excluded.iter().all(meant)
        });
        if all.len() == before {
            let keys = excluded.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
            bail!("exclude ({keys}): expected values of some run, found those of none");
        }
    }
    if all.is_empty() {
        bail!("exclude: expected some runs to be left, found none");
    }
    all.iter_mut().for_each(|combination| combination.sort_by_key(|(key, _)| place(key)));
    // Seed by seed, so that a sweep that is stopped has whole tables of few seeds.
    let seed = |combination: &Combination| {
        let found = combination.iter().find(|(key, _)| key == "seed");
        found.and_then(|(_, seed)| seed.as_integer()).unwrap_or(0)
    };
    all.sort_by_key(seed);
    Ok(all)
}

/// The order of keys in a name, and in which axes are gone through.
fn place(key: &str) -> usize {
    match key {
        "task" => 0,
        "data" => 1,
        "method" => 2,
        "seed" => 4,
        _ => 3,
    }
}

/// Whether a key is one of this run's: `method.cmd1.twin` is of runs of CMD-1 alone, and
/// `task.point-maze.world.states` of those in that environment.
fn applies(plan: &Plan, combination: &Combination, key: &str) -> anyhow::Result<bool> {
    let mut parts = key.split('.');
    let value = |key: &str| {
        let own = combination.iter().find(|(other, _)| other == key).map(|(_, value)| value);
        own.or_else(|| plan.common_value(key))
    };
    Ok(match (parts.next(), parts.next()) {
        (Some("method"), Some(name)) if name.parse::<Method>().is_ok() => match value("method") {
            Some(chosen) => method(chosen)?.key() == name,
            None => true,
        },
        (Some("task"), Some(name)) if EnvironmentKind::of_key(name).is_some() => {
            match value("task").and_then(Value::as_str).and_then(EnvironmentKind::of_name) {
                Some(kind) => kind.key == name,
                None => true,
            }
        }
        _ => true,
    })
}

/// The shortest ends of keys that tell them apart; none for those whose values say enough.
fn short_names(combinations: &[Combination]) -> HashMap<String, String> {
    let all = combinations.iter().flatten().map(|(key, _)| key.as_str());
    let mut keys: Vec<&str> = all.filter(|key| place(key) == 3).collect();
    keys.sort_unstable();
    keys.dedup();
    let end = |key: &str, parts: usize| {
        let all: Vec<_> = key.split('.').collect();
        all[all.len().saturating_sub(parts)..].join(".")
    };
    let short = |key: &str| {
        let unique = |parts: &usize| {
            keys.iter().filter(|other| end(other, *parts) == end(key, *parts)).count() == 1
        };
        (1..).find(unique).map_or_else(|| key.to_owned(), |parts| end(key, parts))
    };
    keys.iter().map(|key| ((*key).to_owned(), short(key))).collect()
}

fn settings(plan: &Plan, combination: &Combination) -> anyhow::Result<RunSettings> {
    let mut keys: Vec<(String, Value)> = Vec::new();
    for (key, value) in plan.common.iter().chain(combination) {
        if applies(plan, combination, key)? {
            // What a run of the list says of itself comes later and holds.
            keys.retain(|(other, _)| other != key);
            keys.push((key.clone(), value.clone()));
        }
    }
    let find = |key: &str| keys.iter().find(|(other, _)| other == key).map(|(_, value)| value);
    let mut arguments = ConfigArguments::default();
    arguments.config.clone_from(&plan.config);
    arguments.method = find("method").map(method).transpose()?;
    arguments.env = find("task").map(task).transpose()?;
    arguments.data = find("data").map(|data| file(data, arguments.env.as_deref())).transpose()?;
    if arguments.env.is_none() && arguments.data.is_none() && arguments.config.is_none() {
        bail!("expected `task`, `data` or `config`, found none of them");
    }
    let mut settings = arguments.settings()?;
    if let Some(hidden) = find("hidden") {
        settings.method.set_hidden(&widths(hidden)?);
    }
    if let Some(rate) = find("learning_rate") {
        let number = rate.as_float().or_else(|| rate.as_integer().map(|whole| whole as f64));
        let rate =
            number.with_context(|| format!("learning_rate: expected a number, found {rate}"))?;
        settings.method.set_learning_rate(rate as f32);
    }
    if let Some(seed) = find("seed") {
        let number = seed.as_integer().and_then(|seed| u64::try_from(seed).ok());
        let seed = number.with_context(|| format!("seed: expected 0, 1, ..., found {seed}"))?;
        settings.seed = seed;
        settings.task.set_data_seed(seed);
    }
    keys.retain(|(key, _)| !SPECIAL.contains(&key.as_str()));
    let settings = with_keys(&settings, &keys)?;
    settings.method.check()?;
    Ok(settings)
}

fn task(value: &Value) -> anyhow::Result<String> {
    match value.as_str() {
        Some(name) if EnvironmentKind::of_name(name).is_some() => Ok(name.to_owned()),
        _ => {
            let known: Vec<_> =
                EnvironmentKind::all().into_iter().flat_map(|kind| kind.names).collect();
            bail!("task: expected one of {}, found {value}", known.join(", "))
        }
    }
}

/// A file of data. `{task}` stands for the task's name, `{data}` for where `cm data` keeps files.
fn file(value: &Value, task: Option<&str>) -> anyhow::Result<std::path::PathBuf> {
    let Some(text) = value.as_str() else { bail!("data: expected a file, found {value}") };
    let mut text = text.to_owned();
    if text.contains("{data}") {
        let folder = Cache::from_environment().folder().display().to_string();
        text = text.replace("{data}", &folder);
    }
    match task {
        Some(task) => text = text.replace("{task}", task),
        None if text.contains("{task}") => bail!("data: {{task}} stands there, but no task is set"),
        None => {}
    }
    Ok(text.into())
}

fn widths(value: &Value) -> anyhow::Result<Vec<usize>> {
    let whole = |value: &Value| usize::try_from(value.as_integer()?).ok().filter(|&wide| wide > 0);
    let all = value.as_array().and_then(|all| all.iter().map(whole).collect::<Option<Vec<_>>>());
    all.filter(|all| !all.is_empty())
        .with_context(|| format!("hidden: expected widths such as [512, 512], found {value}"))
}
