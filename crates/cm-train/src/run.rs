//! A run's folder.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cm_nn::Snapshot;

use crate::{Checkpoint, Error, Result, RunSettings, Scaling};

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

    /// The same numbers for TensorBoard.
    pub fn events_file(&self) -> PathBuf {
        self.path.join("events.out.tfevents.0.run")
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

    /// Pictures.
    pub fn figures(&self) -> PathBuf {
        self.path.join("figures")
    }

    /// The settings in it.
    pub fn settings(&self) -> Result<RunSettings> {
        RunSettings::load(&self.settings_file())
    }

    /// Makes the folder if there is none, and keeps every other process from training in it until the file returned is dropped.
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

    /// Writes the settings of the run, or finds the checkpoint to go on from. A folder with a run of other settings is refused.
    pub(crate) fn claim(&self, settings: &RunSettings) -> Result<Option<Checkpoint>> {
        let file = self.settings_file();
        if file.exists() {
            let found = RunSettings::load(&file)?;
            if let Some(key) = settings.difference(&found) {
                return Err(Error::OtherRun { path: file, key });
            }
        }
        cm_files::replace(&file, settings.to_toml())?;
        let checkpoint = self.checkpoint_file();
        if checkpoint.exists() { Checkpoint::load(&checkpoint).map(Some) } else { Ok(None) }
    }

    /// Writes weights with their scaling.
    pub(crate) fn save_model(path: &Path, parameters: &Snapshot, scaling: &Scaling) -> Result<()> {
        let mut stored = parameters.clone();
        stored.extend(scaling.snapshot());
        Ok(stored.save_safetensors(path)?)
    }
}
