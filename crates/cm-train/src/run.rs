//! A run's folder.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cm_nn::Snapshot;

use crate::record::Table;
use crate::{Checkpoint, Device, Error, Result, RunSettings, Scaling};

/// The folder of a run and the names of what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder at `path`, whether it exists or not.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings, everything needed to repeat the run.
    pub fn settings_file(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// Losses as CSV.
    pub fn metrics_file(&self) -> PathBuf {
        self.path.join("metrics.csv")
    }

    /// Evaluations as CSV.
    pub fn evaluations_file(&self) -> PathBuf {
        self.path.join("evaluations.csv")
    }

    /// Evaluations on road maps as CSV.
    pub fn planned_file(&self) -> PathBuf {
        self.path.join("planned.csv")
    }

    /// Evaluations on its road maps of a policy for goals nearby as CSV, if an experiment had one.
    pub fn nearby_file(&self) -> PathBuf {
        self.path.join("nearby.csv")
    }

    /// The same numbers for TensorBoard.
    pub fn events_file(&self) -> PathBuf {
        self.path.join("events.out.tfevents.0.run")
    }

    /// From which step on it was trained on which device, as CSV.
    pub fn devices_file(&self) -> PathBuf {
        self.path.join("devices.csv")
    }

    /// What held-out trajectories said, as CSV.
    pub fn validations_file(&self) -> PathBuf {
        self.path.join("validation.csv")
    }

    /// Where the run goes on from.
    pub fn checkpoint_file(&self) -> PathBuf {
        self.path.join("checkpoint.bin")
    }

    /// The weights of the last checkpoint.
    pub fn model_file(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }

    /// The weights of the best evaluation.
    pub fn best_file(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// The road map of the model of the best evaluation if `best`, else of the last checkpoint.
    pub fn map_file(&self, best: bool) -> PathBuf {
        self.path.join(if best { "best.roads" } else { "model.roads" })
    }

    /// Pictures.
    pub fn figures(&self) -> PathBuf {
        self.path.join("figures")
    }

    /// The settings in it.
    pub fn settings(&self) -> Result<RunSettings> {
        RunSettings::load(&self.settings_file())
    }

    /// How many steps the checkpoint has; none if there is no checkpoint.
    pub fn checkpointed(&self) -> Result<Option<u64>> {
        match Checkpoint::read_step(&self.checkpoint_file()) {
            Ok(step) => Ok(Some(step)),
            Err(Error::File { cause, .. }) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Refuses the folder if it holds a run with other settings; only `steps` may differ.
    pub fn check(&self, settings: &RunSettings) -> Result<()> {
        let file = self.settings_file();
        if !file.exists() {
            return Ok(());
        }
        match settings.difference(&RunSettings::load(&file)?) {
            Some(key) => Err(Error::OtherRun { path: file, key }),
            None => Ok(()),
        }
    }

    /// Makes the folder if there is none, and keeps every other process from training in it until
    /// the file returned is dropped.
    pub(crate) fn lock(&self) -> Result<File> {
        std::fs::create_dir_all(&self.path).map_err(Error::file(&self.path))?;
        let path = self.path.join(".lock");
        let file = File::create(&path).map_err(Error::file(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { path: self.path.clone() }),
            // Some network drives have no locks: there the user has to take care.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(file),
            Err(TryLockError::Error(cause)) => Err(Error::File { path, cause }),
        }
    }

    /// Writes the settings of the run, or finds the checkpoint to go on from. A folder with a run of
    /// other settings is refused.
    pub(crate) fn claim(&self, settings: &RunSettings) -> Result<Option<Checkpoint>> {
        self.check(settings)?;
        cm_files::replace(self.settings_file(), settings.to_toml())?;
        let checkpoint = self.checkpoint_file();
        if checkpoint.exists() { Checkpoint::load(&checkpoint).map(Some) } else { Ok(None) }
    }

    /// The devices that it was trained on, each with the step from which on; as they were named.
    pub fn devices(&self) -> Result<Vec<(u64, String)>> {
        let path = self.devices_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(Error::File { path, cause }),
        };
        let row = |line: &str| {
            let (step, device) = line.split_once(',')?;
            Some((step.parse().ok()?, device.trim_matches('"').to_owned()))
        };
        let rows = text.lines().skip(1).map(|line| {
            let reason = || format!("expected `step,\"device\"`, found `{line}`");
            row(line).ok_or_else(|| Error::content(&path, reason()))
        });
        rows.collect()
    }

    /// Notes that the run goes on on `device` at `step`; what was noted of later steps is undone.
    pub(crate) fn note_device(&self, step: u64, device: Device) -> Result<()> {
        let mut rows = self.devices()?;
        rows.retain(|&(from, _)| from < step);
        let device = device.to_string();
        if rows.last().is_none_or(|(_, last)| *last != device) {
            rows.push((step, device));
        }
        let rows = rows.iter().map(|(step, device)| format!("{step},\"{device}\"\n"));
        let text = std::iter::once("step,device\n".to_owned()).chain(rows).collect::<String>();
        Ok(cm_files::replace(self.devices_file(), text)?)
    }

    /// Forgets what was noted of held-out trajectories and of road maps after `step`.
    pub(crate) fn cut_notes(&self, step: u64) -> Result<()> {
        cut(self.validations_file(), step)?;
        cut(self.planned_file(), step)
    }

    /// Notes what held-out trajectories said.
    pub(crate) fn note_validation(&self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        note(&self.validations_file(), step, values)
    }

    /// Notes an evaluation on a road map.
    pub(crate) fn note_planned(&self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        note(&self.planned_file(), step, values)
    }

    /// Writes weights with their scaling.
    pub(crate) fn save_model(path: &Path, parameters: &Snapshot, scaling: &Scaling) -> Result<()> {
        let mut stored = parameters.clone();
        stored.extend(scaling.snapshot());
        Ok(stored.save_safetensors(path)?)
    }
}

/// Cuts a CSV file off after `step`.
fn cut(path: PathBuf, step: u64) -> Result<()> {
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(Error::File { path, cause }),
    };
    let early = |line: &&str| {
        let number = line.split(',').next().and_then(|cell| cell.parse::<u64>().ok());
        number.is_none_or(|number| number <= step)
    };
    let kept: String = text.lines().filter(early).map(|line| format!("{line}\n")).collect();
    if kept == text { Ok(()) } else { Ok(cm_files::replace(path, kept)?) }
}

/// Appends to a CSV file.
fn note(path: &Path, step: u64, values: &[(&str, f64)]) -> Result<()> {
    let length = std::fs::metadata(path).map_or(0, |file| file.len());
    Table::open(path, length)?.push(step, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;

    #[test]
    fn devices_are_noted_from_the_step_on_at_which_they_began() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(scratch.path());
        let gpu = Device::Cuda { ordinal: 1, precision: Precision::Bf16 };
        let noted = |step, device| {
            folder.note_device(step, device).unwrap();
            folder.devices().unwrap().iter().map(|(step, _)| *step).collect::<Vec<_>>()
        };
        assert_eq!(folder.devices().unwrap(), []);
        assert_eq!(noted(0, Device::Cpu), [0]);
        // Stopped and gone on without a change.
        assert_eq!(noted(10, Device::Cpu), [0]);
        assert_eq!(noted(20, gpu), [0, 20]);
        assert_eq!(noted(30, Device::Cpu), [0, 20, 30]);
        // Begun again from the checkpoint of step 20.
        assert_eq!(noted(20, gpu), [0, 20]);
        assert_eq!(folder.devices().unwrap()[1], (20, "cuda:1,bf16".to_owned()));
        std::fs::write(folder.devices_file(), "step,device\nnone\n").unwrap();
        assert!(folder.devices().unwrap_err().to_string().contains("`none`"));
    }
}
