//! CSV files that grow by a row at a time and can be cut back to an earlier length.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A CSV file under construction. Its header is written with the first row.
pub(crate) struct Table {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Table {
    /// Opens the file at the length it had, cutting off what came later.
    pub(crate) fn open(path: &Path, length: u64) -> Result<Self> {
        let file = open_at(path, length)?;
        Ok(Self { path: path.to_path_buf(), file, length })
    }

    pub(crate) fn push(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let mut text = String::new();
        if self.length == 0 {
            text.push_str("step");
            for (name, _) in values {
                text.push(',');
                text.push_str(name);
            }
            text.push('\n');
        }
        text.push_str(&step.to_string());
        for (_, value) in values {
            text.push_str(&format!(",{value}"));
        }
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(Error::file(&self.path))?;
        self.length += text.len() as u64;
        Ok(())
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

/// Opens a file for appending after its first `length` bytes; what came later is cut off.
pub(super) fn open_at(path: &Path, length: u64) -> Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(Error::file(path))?;
    let found = file.metadata().map_err(Error::file(path))?.len();
    if found < length {
        let reason = format!("expected at least {length} bytes, found {found}: it was cut short");
        return Err(Error::content(path, reason));
    }
    file.set_len(length).map_err(Error::file(path))?;
    file.seek(SeekFrom::Start(length)).map_err(Error::file(path))?;
    Ok(file)
}

/// A row of `metrics.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricRow {
    /// Steps done.
    pub step: u64,
    /// Names and values.
    pub values: Vec<(String, f64)>,
}

/// A row of `evaluations.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationRow {
    /// Steps done.
    pub step: u64,
    /// The share of episodes that reached their goals.
    pub success: f64,
    /// Mean number of steps of an episode.
    pub mean_steps: f64,
    /// The share of each of the environment's tasks, if it has several.
    pub tasks: Vec<f64>,
}

/// Reads a run's `metrics.csv`.
pub fn read_metrics(path: &Path) -> Result<Vec<MetricRow>> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().unwrap_or_default().split(',').skip(1).collect();
    lines
        .enumerate()
        .map(|(number, line)| {
            let refuse =
                |reason: &str| Error::content(path, format!("line {}: {reason}", number + 2));
            let mut cells = line.split(',');
            let step = cells.next().and_then(|cell| cell.parse().ok());
            let step = step.ok_or_else(|| refuse("expected a step number"))?;
            let values: Vec<f64> = cells
                .map(str::parse)
                .collect::<Result<_, _>>()
                .map_err(|_| refuse("expected numbers"))?;
            if values.len() != names.len() {
                let reason = format!("expected {} numbers, found {}", names.len(), values.len());
                return Err(refuse(&reason));
            }
            let named = names.iter().map(|name| (*name).to_owned()).zip(values);
            Ok(MetricRow { step, values: named.collect() })
        })
        .collect()
}

/// Reads a run's `evaluations.csv`.
pub fn read_evaluations(path: &Path) -> Result<Vec<EvaluationRow>> {
    let rows = read_metrics(path)?.into_iter().map(|MetricRow { step, values }| {
        let get = |name: &str| {
            let found = values.iter().find(|(key, _)| key == name);
            found
                .map(|(_, value)| *value)
                .ok_or_else(|| Error::content(path, format!("expected a column `{name}`")))
        };
        let tasks = values.iter().filter(|(name, _)| name.starts_with("task_"));
        let tasks = tasks.map(|(_, value)| *value).collect();
        let (success, mean_steps) = (get("success")?, get("mean_steps")?);
        Ok(EvaluationRow { step, success, mean_steps, tasks })
    });
    rows.collect()
}
