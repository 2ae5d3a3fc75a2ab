//! What can go wrong with a device, each with what was looked for and what to do.

/// Why the GPU could not be used, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver's library is not there.
    #[error(
        "no NVIDIA driver: libcuda.so.1 could not be loaded; install the driver (525 or newer), or \
         run on the CPU"
    )]
    NoDriver,
    /// The driver is older than CUDA 12.
    #[error(
        "the NVIDIA driver supports CUDA {major}.{minor}, but 12.0 or newer (driver 525) is needed"
    )]
    OldDriver {
        /// Of the version it supports.
        major: u32,
        /// Of the version it supports.
        minor: u32,
    },
    /// There is a driver but no such device.
    #[error("there is no CUDA device {wanted}: the driver sees {found}")]
    NoDevice {
        /// The device's number.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// The device lacks instructions that the kernels use.
    #[error(
        "device {name} has compute capability {major}.{minor}; 8.0 (Ampere) or newer is needed"
    )]
    OldDevice {
        /// Its name.
        name: String,
        /// Its compute capability.
        major: u32,
        /// Its compute capability.
        minor: u32,
    },
    /// The run-time compiler is not there.
    #[error(
        "CUDA's run-time compiler was not found: looked for {looked_for}; install the CUDA toolkit \
         or the Python package nvidia-cuda-nvrtc, and set CM_NVRTC to its libnvrtc.so"
    )]
    NoCompiler {
        /// The names that were tried.
        looked_for: String,
    },
    /// The run-time compiler lacks a function.
    #[error("{library} is not a usable run-time compiler: {reason}")]
    BadCompiler {
        /// The library.
        library: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A kernel does not compile.
    #[error("kernels `{module}` do not compile for {target}:\n{log}")]
    Compile {
        /// The file of kernels.
        module: &'static str,
        /// What they were compiled for.
        target: String,
        /// What the compiler said.
        log: String,
    },
    /// The device's memory is full.
    #[error(
        "out of GPU memory: {wanted} MiB more were needed, {free} of {total} MiB are free; use \
         smaller batches or fewer replicas, or end other programs on the device"
    )]
    OutOfMemory {
        /// MiB asked for.
        wanted: usize,
        /// MiB free.
        free: usize,
        /// MiB there are.
        total: usize,
    },
    /// A matrix has more numbers than kernels count.
    #[error("a matrix of {0} numbers is too large: at most 2^31 - 1 are possible")]
    TooLarge(usize),
    /// A step was to be recorded inside the loss of gradients.
    #[error("a captured step cannot run inside the loss of gradients")]
    InsideGradients,
    /// A tensor of a recorded step was used although the step never ran.
    #[error("a matrix of a captured step was used, but recording that step failed")]
    NeverRun,
    /// The driver refused a call.
    #[error("CUDA: {call} failed: {reason}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// What the driver said.
        reason: String,
    },
}

/// The result of what can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<Error> for cm_nn::Error {
    fn from(error: Error) -> Self {
        Self::Backend(Box::new(error))
    }
}
