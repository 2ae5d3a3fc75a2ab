//! How far each run is, whichever engine it is with.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use cm_train::RunFolder;

use super::folder::SweepFolder;
use super::runs::PlannedRun;

/// What a run's own folder and its note say.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Of the checkpoint.
    pub(super) checkpointed: u64,
    /// The last that was recorded; steps behind the checkpoint are lost if training ends now.
    pub(super) recorded: u64,
    pub(super) steps: u64,
    /// Why there is no telling, or why the run failed.
    pub(super) error: Option<String>,
}

impl Progress {
    pub(super) fn of(run: &PlannedRun) -> Self {
        let folder = RunFolder::new(&run.job.folder);
        let steps = run.job.settings.steps;
        let checkpoint = folder.check(&run.job.settings).and_then(|()| folder.checkpointed());
        match checkpoint {
            Ok(step) => {
                let checkpointed = step.unwrap_or(0);
                let recorded = last_step(&folder.metrics_file()).unwrap_or(0);
                Self { checkpointed, recorded, steps, error: None }
            }
            Err(error) => Self { steps, error: Some(error.to_string()), ..Self::default() },
        }
    }

    pub(super) fn finished(&self) -> bool {
        self.error.is_none() && self.checkpointed >= self.steps
    }
}

/// The first number of the last whole line.
fn last_step(path: &Path) -> Option<u64> {
    const TAIL: u64 = 8192;
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (whole, _) = text.rsplit_once('\n')?;
    whole.lines().next_back()?.split(',').next()?.parse().ok()
}

/// Seconds until a run is done at the pace since it began where it is.
pub(super) fn pace(folder: &SweepFolder, name: &str, progress: &Progress, now: u64) -> Option<f64> {
    let note = folder.note(name)?;
    let done = progress.recorded.checked_sub(note.from).filter(|&done| done > 0)?;
    let seconds = now.checked_sub(note.started).filter(|&seconds| seconds > 0)?;
    Some(done as f64 / seconds as f64)
}
