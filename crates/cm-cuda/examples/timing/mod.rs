//! How long a captured step takes, by the device's own clock.

use cm_cuda::CudaBackend;
use cm_nn::{Backend, Result};

const REPLAYS: usize = 21;
const TOGETHER: usize = 100;

/// Microseconds of a replay.
pub(crate) struct Times {
    /// The median of 21 replays, each waited for.
    pub(crate) median: f32,
    /// The mean of 100 without a look in between, as training runs them.
    pub(crate) each: f32,
}

/// Captures `step` and times its replays.
pub(crate) fn time<T>(backend: &CudaBackend, step: impl FnMut() -> Result<T>) -> Result<Times> {
    let device = backend.device().clone();
    let mut step = backend.capture(step);
    for _ in 0..3 {
        step.run()?;
    }
    device.wait()?;
    let mut times = Vec::new();
    for _ in 0..REPLAYS {
        let (done, milliseconds) = device.time(|| step.run().map(drop))?;
        done?;
        times.push(1e3 * milliseconds);
    }
    let (done, together) = device.time(|| (0..TOGETHER).try_for_each(|_| step.run().map(drop)))?;
    done?;
    times.sort_by(f32::total_cmp);
    Ok(Times { median: times[REPLAYS / 2], each: 1e3 * together / TOGETHER as f32 })
}
