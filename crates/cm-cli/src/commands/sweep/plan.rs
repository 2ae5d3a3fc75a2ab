//! The file that describes a sweep, as it is written.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use cm_train::{Device, Method};
use serde::Deserialize;
use toml::{Table, Value};

use super::shipped;
use super::slurm::SlurmSettings;
use super::values::{flatten, values};

/// What `PLAN.toml` holds.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The file itself, or the name of a plan that is shipped.
    pub(crate) file: PathBuf,
    /// Folder of all runs.
    pub(crate) out: PathBuf,
    /// Settings to begin with, as `cm train --config` takes them.
    pub(crate) config: Option<PathBuf>,
    pub(crate) device: Device,
    /// How often a run that fails is tried again.
    pub(crate) retries: u32,
    /// What every run has: keys that choose a run, and settings.
    pub(crate) common: Vec<(String, Value)>,
    /// What runs differ in, each key with its values.
    pub(crate) axes: Vec<(String, Vec<Value>)>,
    /// Combinations that are listed one by one; the axes multiply each.
    pub(crate) listed: Vec<Vec<(String, Value)>>,
    /// Combinations that are left out: keys, each with the values meant.
    pub(crate) excluded: Vec<Vec<(String, Vec<Value>)>>,
    pub(crate) slurm: SlurmSettings,
}

/// The file's own form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    out: PathBuf,
    config: Option<PathBuf>,
    task: Option<Value>,
    data: Option<Value>,
    method: Option<Value>,
    steps: Option<Value>,
    device: Option<String>,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    axes: Table,
    #[serde(default)]
    runs: Vec<Table>,
    #[serde(default)]
    exclude: Vec<Table>,
    #[serde(default)]
    slurm: SlurmSettings,
}

impl Plan {
    /// Reads the file, or the plan that is shipped under this name; errors name it and the key.
    pub(crate) fn load(file: &Path) -> anyhow::Result<Self> {
        let name = file.display();
        let text = match Self::shipped(file) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(file).with_context(|| {
                let shipped = shipped::names();
                format!("{name}: could not be read, and is none of those shipped ({shipped})")
            })?,
        };
        Self::parse(file, &text).with_context(|| name.to_string())
    }

    /// Files go before plans that are shipped.
    fn shipped(file: &Path) -> Option<&'static str> {
        shipped::text(file.to_str()?).filter(|_| !file.is_file())
    }

    /// What names this plan on another machine of the same file system.
    pub(crate) fn elsewhere(&self) -> std::io::Result<PathBuf> {
        match Self::shipped(&self.file) {
            Some(_) => Ok(self.file.clone()),
            None => std::path::absolute(&self.file),
        }
    }

    fn parse(file: &Path, text: &str) -> anyhow::Result<Self> {
        let written: Written =
            toml::from_str(text).map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
        let Written { out, config, task, data, method, steps, device, retries, .. } = written;
        let Written { set, axes, runs, exclude, slurm, .. } = written;
        if out.as_os_str().is_empty() {
            bail!("out: expected a folder, found an empty name");
        }
        let device = match device {
            Some(name) => name.parse().context("device")?,
            None => Device::Cpu,
        };
        let named = [("task", task), ("data", data), ("method", method), ("steps", steps)];
        let named = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let common = named.chain(flatten(set)).collect();
        let axis = |(key, value): (String, Value)| {
            let found = values(value).with_context(|| format!("axes.{key}"))?;
            Ok((key, found))
        };
        let axes = flatten(axes).into_iter().map(axis).collect::<anyhow::Result<Vec<_>>>()?;
        let listed = runs.into_iter().map(|run| flatten(run).into_iter().collect::<Vec<_>>());
        let excluded = exclude.into_iter().map(|table| {
            let matched = flatten(table).into_iter().map(|(key, value)| match value {
                Value::Array(values) => (key, values),
                value => (key, vec![value]),
            });
            matched.collect::<Vec<_>>()
        });
        let plan = Self {
            file: file.to_owned(),
            out,
            config,
            device,
            retries,
            common,
            axes,
            listed: listed.collect(),
            excluded: excluded.collect(),
            slurm,
        };
        plan.check()?;
        Ok(plan)
    }

    /// What can be said without making settings.
    fn check(&self) -> anyhow::Result<()> {
        let both = |key: &str| self.common.iter().any(|(other, _)| other == key);
        for (key, values) in &self.axes {
            if both(key) {
                bail!("axes.{key}: expected one value or an axis, found both");
            }
            if self.listed.iter().flatten().any(|(other, _)| other == key) {
                bail!("axes.{key}: expected an axis or a key of [[runs]], found both");
            }
            for (index, value) in values.iter().enumerate() {
                if values[..index].contains(value) {
                    bail!("axes.{key}: expected different values, found {value} twice");
                }
            }
        }
        if let Some(index) = self.listed.iter().position(Vec::is_empty) {
            bail!("[[runs]] {}: expected at least one key, found none", index + 1);
        }
        for (index, excluded) in self.excluded.iter().enumerate() {
            if excluded.is_empty() {
                bail!("[[exclude]] {}: expected at least one key, found none", index + 1);
            }
            for (key, _) in excluded {
                let known = self.axes.iter().any(|(axis, _)| axis == key)
                    || self.listed.iter().flatten().any(|(other, _)| other == key);
                if !known {
                    bail!("exclude.{key}: expected a key of [axes] or [[runs]], found another");
                }
            }
        }
        Ok(())
    }

    /// The method of all runs that choose none themselves, where the plan says it.
    pub(crate) fn common_value(&self, key: &str) -> Option<&Value> {
        self.common.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }
}

/// A method by the name in a plan.
pub(crate) fn method(value: &Value) -> anyhow::Result<Method> {
    match value {
        Value::String(name) => Ok(name.parse()?),
        other => bail!("method: expected a name such as \"cmd1\", found {other}"),
    }
}
