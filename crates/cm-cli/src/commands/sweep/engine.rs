//! Where runs are trained: the seam between a plan and a machine or a cluster.

use std::collections::BTreeMap;

use super::Sweep;
use super::folder::SweepLock;
use super::runs::PlannedRun;

/// Something that trains runs.
pub(super) trait Engine {
    /// Sees to it that the runs are trained: now and here, or later and elsewhere. The lock of the
    /// sweep's folder is its to keep as long as it needs it.
    fn start(&self, sweep: &Sweep, missing: &[&PlannedRun], lock: SweepLock) -> anyhow::Result<()>;

    /// The runs that are under way or in its queue, by name.
    fn places(&self, sweep: &Sweep) -> anyhow::Result<BTreeMap<String, Place>>;

    /// Ends what is under way and empties the queue; returns how many runs that were.
    fn cancel(&self, sweep: &Sweep) -> anyhow::Result<usize>;
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Under way, or in a queue.
    pub(super) running: bool,
    /// The machine or the task, and why it waits.
    pub(super) name: String,
}
