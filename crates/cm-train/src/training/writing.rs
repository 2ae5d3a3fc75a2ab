//! Checkpoints that are written beside training.

use std::thread::JoinHandle;

use crate::{Checkpoint, Error, Result, RunFolder, Task};

/// A model and a checkpoint on their way to the disk: encoding and flushing them takes as long as
/// hundreds of steps of a GPU. Dropping it waits for them.
pub(super) struct Writing {
    step: u64,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Writing {
    pub(super) fn start(folder: &RunFolder, task: &Task, checkpoint: Checkpoint) -> Result<Self> {
        let [model, file] = [folder.model_file(), folder.checkpoint_file()];
        let (scaling, step) = (task.scaling.clone(), checkpoint.step);
        let write = move || {
            RunFolder::save_model(&model, &checkpoint.parameters, &scaling)?;
            checkpoint.save(&file)
        };
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(write);
        Ok(Self { step, thread: Some(thread.map_err(Error::Thread)?) })
    }

    /// Waits until it is on the disk; returns its step.
    pub(super) fn wait(mut self) -> Result<u64> {
        let written = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        written.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(self.step)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // What went wrong is lost with the run that nobody asks any more.
            let _ = thread.join();
        }
    }
}
