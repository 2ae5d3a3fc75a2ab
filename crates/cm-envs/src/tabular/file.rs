//! Processes as files.
//!
//! A chain and a controlled process are TOML files that list their rows; [`load`] and [`save`] move
//! them, and grids, between memory and disk.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::chain::MarkovChain;
use super::process::ControlledProcess;
use crate::Error;
use crate::error::check_index;

/// Reads a [`MarkovChain`], a [`ControlledProcess`] or a [`Grid`](super::Grid) from a TOML file.
/// Unknown keys are refused.
///
/// ```no_run
/// use cm_envs::tabular::{MarkovChain, load};
///
/// // states = 2
/// // [[transition]]
/// // state = 0
/// // next = [0, 1]
/// // probability = [0.5, 0.5]
/// // [[transition]]
/// // state = 1
/// // next = [1]
/// // probability = [1.0]
/// let chain: MarkovChain = load("chain.toml")?;
/// # Ok::<(), cm_envs::Error>(())
/// ```
pub fn load<Process: DeserializeOwned>(path: impl AsRef<Path>) -> Result<Process, Error> {
    let path = path.as_ref();
    let text =
        std::fs::read_to_string(path).map_err(|cause| Error::File { path: path.into(), cause })?;
    toml::from_str(&text)
        .map_err(|error| Error::Content { path: path.into(), reason: error.to_string() })
}

/// Writes what [`load`] reads. A file already there is replaced at once or not at all.
pub fn save(path: impl AsRef<Path>, process: &impl Serialize) -> Result<(), Error> {
    let path = path.as_ref();
    let text = toml::to_string(process)
        .map_err(|error| Error::Content { path: path.into(), reason: error.to_string() })?;
    Ok(cm_files::replace(path, text)?)
}

/// A [`MarkovChain`] as it is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChainFile {
    states: usize,
    transition: Vec<ChainRow>,
}

/// One row of a chain.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainRow {
    state: usize,
    next: Vec<usize>,
    probability: Vec<f64>,
}

/// A [`ControlledProcess`] as it is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessFile {
    states: usize,
    actions: usize,
    transition: Vec<ProcessRow>,
}

/// One row of a controlled process.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessRow {
    state: usize,
    action: usize,
    next: Vec<usize>,
    probability: Vec<f64>,
}

impl TryFrom<ChainFile> for MarkovChain {
    type Error = Error;

    fn try_from(file: ChainFile) -> Result<Self, Error> {
        let rows = file.transition.into_iter().map(|row| (row.state, 0, row.next, row.probability));
        let rows =
            collect_rows(file.states, 1, rows, |state, _| format!("transition of state {state}"))?;
        Self::from_fn(file.states, |state| pairs(&rows[state]))
    }
}

impl TryFrom<ProcessFile> for ControlledProcess {
    type Error = Error;

    fn try_from(file: ProcessFile) -> Result<Self, Error> {
        let rows = file
            .transition
            .into_iter()
            .map(|row| (row.state, row.action, row.next, row.probability));
        let rows = collect_rows(file.states, file.actions, rows, |state, action| {
            format!("transition of state {state}, action {action}")
        })?;
        Self::from_fn(file.states, file.actions, |state, action| {
            pairs(&rows[state * file.actions + action])
        })
    }
}

impl From<MarkovChain> for ChainFile {
    fn from(chain: MarkovChain) -> Self {
        let transition = (0..chain.states())
            .map(|state| {
                let (next, probability) = chain.successors(state).unzip();
                ChainRow { state, next, probability }
            })
            .collect();
        Self { states: chain.states(), transition }
    }
}

impl From<ControlledProcess> for ProcessFile {
    fn from(process: ControlledProcess) -> Self {
        let rows = (0..process.states())
            .flat_map(|state| (0..process.actions()).map(move |action| (state, action)));
        let transition = rows
            .map(|(state, action)| {
                let (next, probability) = process.successors(state, action).unzip();
                ProcessRow { state, action, next, probability }
            })
            .collect();
        Self { states: process.states(), actions: process.actions(), transition }
    }
}

type Row = (Vec<usize>, Vec<f64>);

/// Puts the rows in order, each present once.
fn collect_rows(
    states: usize,
    actions: usize,
    rows: impl ExactSizeIterator<Item = (usize, usize, Vec<usize>, Vec<f64>)>,
    name: impl Fn(usize, usize) -> String,
) -> Result<Vec<Row>, Error> {
    let expected = states.saturating_mul(actions);
    if rows.len() != expected {
        return Err(Error::Length { what: "transition".into(), expected, found: rows.len() });
    }
    let mut found: Vec<Option<Row>> = vec![None; expected];
    for (state, action, next, probability) in rows {
        check_index(|| "transition, state".into(), state, states)?;
        check_index(|| "transition, action".into(), action, actions)?;
        if next.len() != probability.len() {
            return Err(Error::Length {
                what: format!("{}, probability", name(state, action)),
                expected: next.len(),
                found: probability.len(),
            });
        }
        if found[state * actions + action].replace((next, probability)).is_some() {
            return Err(Error::Twice { row: name(state, action) });
        }
    }
    // As many rows as places and none twice: every place is taken.
    Ok(found.into_iter().flatten().collect())
}

fn pairs((next, probability): &Row) -> impl Iterator<Item = (usize, f64)> + '_ {
    next.iter().copied().zip(probability.iter().copied())
}
