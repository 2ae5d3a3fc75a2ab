//! Where training runs.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use cm_nn::DfdxBackend;

use crate::{Error, Event, Replica, Report, Result, RunFolder, RunSettings, Task, train_on};

/// The device that a run is trained on: the one place where a backend is chosen.
///
/// Checkpoints and models are the same on every device, so a run may go on on another one.
///
/// ```
/// use cm_train::Device;
///
/// assert_eq!("cpu".parse::<Device>()?, Device::Cpu);
/// assert!("tpu".parse::<Device>().is_err());
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor, with the threads of rayon's current pool; one seed at a time.
    #[default]
    Cpu,
}

impl Device {
    /// The most seeds that it trains at once; none if memory alone decides.
    pub fn most_replicas(self) -> Option<usize> {
        match self {
            Self::Cpu => Some(1),
        }
    }

    /// Trains several runs that differ in their seeds and data at once; see [`train_on`].
    pub fn train(
        self,
        replicas: &[Replica<'_>],
        stop: &AtomicBool,
        watch: impl FnMut(usize, Event),
    ) -> Result<Vec<Result<Report>>> {
        match self {
            Self::Cpu => train_on(DfdxBackend::with_seeds, replicas, stop, watch),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = match name {
            "cpu" => return Ok(Self::Cpu),
            name if name == "cuda" || name.starts_with("cuda:") => {
                format!("`{name}`: this build has no CUDA backend")
            }
            name => format!("`{name}`"),
        };
        Err(Error::Setting { setting: "device".to_owned(), expected: "cpu", found })
    }
}

/// Trains one run in `folder` until its steps are done or `stop` is set; goes on from the folder's
/// checkpoint if there is one, and ends with one.
///
/// The same settings and task give the same numbers, in one go or in several. If a loss or a weight
/// stops being finite, the run ends with [`Error::Diverged`], and the last good checkpoint is kept.
pub fn train(
    device: Device,
    settings: &RunSettings,
    task: &Task,
    folder: &RunFolder,
    stop: &AtomicBool,
    mut watch: impl FnMut(Event),
) -> Result<Report> {
    let replica = Replica { settings, task, folder };
    let mut reports = device.train(&[replica], stop, |_, event| watch(event))?;
    reports.remove(0)
}
