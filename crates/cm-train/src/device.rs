//! Where training runs, and where road maps are made.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use cm_nn::DfdxBackend;

#[cfg(feature = "cuda")]
use crate::cuda::Cuda;
use crate::training::{Make, train_with};
use crate::{
    Error, Event, Model, PlanSettings, Replica, Report, Result, RoadMap, RunFolder, RunSettings,
    Task,
};

/// The device that a run is trained on: the one place where a backend is chosen.
///
/// Checkpoints and models are the same on every device, so a run may go on on another one.
///
/// As text: `cpu`; `cuda`, `cuda:1` (the second GPU), `cuda:0,bf16` or `cuda,highest` (another
/// [`Precision`]); `auto` or `auto,bf16` for the first GPU if there is a usable one, else the CPU.
///
/// ```
/// use cm_train::{Device, Precision};
///
/// assert_eq!("cpu".parse::<Device>()?, Device::Cpu);
/// let device = Device::Cuda { ordinal: 1, precision: Precision::Bf16 };
/// assert_eq!("cuda:1,bf16".parse::<Device>()?, device);
/// assert_eq!("cuda".parse::<Device>()?.to_string(), "cuda:0,tf32");
/// assert!("tpu".parse::<Device>().is_err());
/// # Ok::<(), cm_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The processor, with the threads of rayon's current pool; one seed at a time.
    #[default]
    Cpu,
    /// A GPU. Nothing else is used if it cannot be.
    Cuda {
        /// Its number, from 0.
        ordinal: usize,
        /// Of its matrix products.
        precision: Precision,
    },
    /// The first GPU if it can be used, else the processor; [`resolve`](Self::resolve) says which.
    Auto {
        /// Of matrix products, if it is the GPU.
        precision: Precision,
    },
}

/// How exactly a GPU computes matrix products. The CPU always computes in single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Single precision, as exact as the CPU.
    Highest,
    /// Operands rounded to TF32 (10 bits after the point).
    #[default]
    Tf32,
    /// Operands rounded to bfloat16 (7 bits after the point); parameters stay in single precision.
    Bf16,
}

impl Device {
    /// The most seeds that it trains at once; none if memory alone decides.
    pub fn most_replicas(self) -> Option<usize> {
        match self.resolve() {
            Ok((Self::Cuda { .. }, _)) => None,
            _ => Some(1),
        }
    }

    /// The device that will be used, never [`Auto`](Self::Auto), and a sentence on what it is. Fails
    /// if it cannot be used, with what was looked for and what to do.
    pub fn resolve(self) -> Result<(Self, String)> {
        match self {
            Self::Cpu => Ok((self, "the CPU".to_owned())),
            Self::Cuda { ordinal, .. } => Ok((self, gpu(ordinal)?)),
            Self::Auto { precision } => match gpu(0) {
                Ok(name) => Ok((Self::Cuda { ordinal: 0, precision }, name)),
                Err(error) => Ok((Self::Cpu, format!("the CPU, since there is no GPU: {error}"))),
            },
        }
    }

    /// Trains several runs that differ in their seeds and data at once; see
    /// [`train_on`](crate::train_on). Each run's folder says which device it was.
    pub fn train(
        self,
        replicas: &[Replica<'_>],
        stop: &AtomicBool,
        watch: impl FnMut(usize, Event),
    ) -> Result<Vec<Result<Report>>> {
        let (device, _) = self.resolve()?;
        match device {
            #[cfg(feature = "cuda")]
            Self::Cuda { ordinal, precision } => {
                let cuda = Cuda::open(ordinal, precision)?;
                train_with(&cuda, Some(device), replicas, stop, watch)
            }
            _ => {
                let cpu = Make(DfdxBackend::with_seeds);
                train_with(&cpu, Some(device), replicas, stop, watch)
            }
        }
    }

    /// The road map of a model's data, as [`RoadMap::of_data`] makes it on the CPU. A GPU compares
    /// states in single precision, whatever its [`Precision`]; the last digits differ from the CPU's.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use cm_train::{Device, Method, Model, PlanSettings, RunFolder, RunSettings, train};
    ///
    /// let settings = RunSettings::tiny_plane(Method::Cmd1, 0);
    /// let folder = tempfile::tempdir().unwrap();
    /// let folder = RunFolder::new(folder.path().join("run"));
    /// let task = settings.task.open()?;
    /// train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
    ///
    /// let device: Device = "auto".parse()?;
    /// let plan = PlanSettings { nodes: 50, rows: 500, ..PlanSettings::default() };
    /// let map = device.road_map(&Model::load(&folder, false)?, &task, &plan)?;
    /// assert!(!map.links().is_empty());
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn road_map(self, model: &Model, task: &Task, settings: &PlanSettings) -> Result<RoadMap> {
        match self.resolve()?.0 {
            #[cfg(feature = "cuda")]
            Self::Cuda { ordinal, .. } => {
                Cuda::open(ordinal, Precision::Highest)?.road_map(model, task, settings)
            }
            _ => RoadMap::of_data(model, task, settings),
        }
    }
}

/// The name of a GPU that can be used.
#[cfg(feature = "cuda")]
fn gpu(ordinal: usize) -> Result<String> {
    let info = cm_cuda::Device::open(ordinal).map_err(cm_nn::Error::from)?.info();
    let ((major, minor), (cuda, point)) = (info.capability, info.driver);
    Ok(format!("{} (compute capability {major}.{minor}, CUDA {cuda}.{point})", info.name))
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: usize) -> Result<String> {
    let found = "`cuda`: this build has no CUDA backend (feature `cuda`)".to_owned();
    Err(Error::Setting { setting: "device".to_owned(), expected: "cpu", found })
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Highest => "highest",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda { ordinal, precision } => write!(formatter, "cuda:{ordinal},{precision}"),
            Self::Auto { precision } => write!(formatter, "auto,{precision}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).ok_or_else(|| Error::Setting {
            setting: "device".to_owned(),
            expected: "cpu, cuda, cuda:N or auto; behind the last three ,highest ,tf32 or ,bf16",
            found: format!("`{text}`"),
        })
    }
}

fn parse(text: &str) -> Option<Device> {
    if text == "cpu" {
        return Some(Device::Cpu);
    }
    let (name, precision) = match text.split_once(',') {
        None => (text, Precision::default()),
        Some((name, "highest")) => (name, Precision::Highest),
        Some((name, "tf32")) => (name, Precision::Tf32),
        Some((name, "bf16")) => (name, Precision::Bf16),
        Some(_) => return None,
    };
    match name.split_once(':') {
        None if name == "auto" => Some(Device::Auto { precision }),
        None if name == "cuda" => Some(Device::Cuda { ordinal: 0, precision }),
        Some(("cuda", number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(Device::Cuda { ordinal: number.parse().ok()?, precision })
        }
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        let cuda = |ordinal, precision| Device::Cuda { ordinal, precision };
        let all = [
            ("cpu", Device::Cpu),
            ("cuda", cuda(0, Precision::Tf32)),
            ("cuda:3", cuda(3, Precision::Tf32)),
            ("cuda,highest", cuda(0, Precision::Highest)),
            ("cuda:12,bf16", cuda(12, Precision::Bf16)),
            ("auto", Device::Auto { precision: Precision::Tf32 }),
            ("auto,bf16", Device::Auto { precision: Precision::Bf16 }),
        ];
        for (text, device) in all {
            assert_eq!(text.parse::<Device>().unwrap(), device, "{text}");
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device, "{text}");
        }
        let bad = ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:+1", "cuda:1,fp8", "cpu,bf16"];
        for text in bad.into_iter().chain(["auto:0", "cuda:99999999999999999999", "cuda:0,"]) {
            let error = text.parse::<Device>().unwrap_err().to_string();
            assert!(error.contains("cuda:N") && error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn cuda_never_becomes_the_cpu_and_auto_says_what_it_took() {
        let (precision, last) = (Precision::Tf32, 999);
        // No machine has so many.
        let error = Device::Cuda { ordinal: last, precision }.resolve().unwrap_err().to_string();
        let says_why = error.contains("libcuda") || error.contains("999");
        assert!(says_why || cfg!(not(feature = "cuda")), "{error}");
        let (device, what) = Device::Auto { precision }.resolve().unwrap();
        match device {
            Device::Cpu => assert!(what.starts_with("the CPU, since"), "{what}"),
            device => assert_eq!(device, Device::Cuda { ordinal: 0, precision }),
        }
    }
}
