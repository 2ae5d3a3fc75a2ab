//! What a run tells while it goes, and when it ends.

use std::time::Duration;

use crate::Validation;

/// What happens in a run, for progress bars and live tables.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins, at a checkpoint if it is not the first time.
    Started {
        /// Steps done before.
        step: u64,
        /// Steps there will be.
        steps: u64,
    },
    /// Losses were recorded.
    Recorded {
        /// Steps done.
        step: u64,
    },
    /// The policy was evaluated.
    Evaluated {
        /// Steps done.
        step: u64,
        /// The share of episodes that reached their goals.
        success: f64,
        /// The same on a road map, if there is one.
        planned: Option<f64>,
    },
    /// Trajectories that are held out were looked at.
    Validated {
        /// Steps done.
        step: u64,
        /// What was found.
        found: Validation,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Steps done.
    pub step: u64,
    /// Whether all of them are, or training ended early.
    pub finished: bool,
    /// Whether it ended early: the loss on held-out trajectories fell no more.
    pub early: bool,
    /// The smallest loss on held-out trajectories: after which step, and the loss.
    pub held_out: Option<(u64, f64)>,
    /// The best evaluation: after which step, and its success rate.
    pub best: Option<(u64, f64)>,
    /// Where the time went, of this call alone.
    pub timings: Timings,
}

/// Where the time of a run went; of all runs together if several are trained at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Losses, gradients and optimisers, from one wait for the device to the next.
    pub learning: Duration,
    /// Waiting for batches, which are drawn on a background thread, and handing them to the
    /// backend.
    pub sampling: Duration,
    /// Recording, and waiting for checkpoints, which are written beside training.
    pub recording: Duration,
    /// Waiting for policies that act in the environment, which they do beside training.
    pub evaluating: Duration,
}

impl Timings {
    /// The time spent beside the losses, evaluations apart, as a share of the time in them.
    pub fn overhead(&self) -> f64 {
        let beside = self.sampling + self.recording;
        beside.as_secs_f64() / self.learning.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}
