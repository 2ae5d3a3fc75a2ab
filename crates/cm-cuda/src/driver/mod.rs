//! The few calls of CUDA's driver that this crate makes: the only `unsafe` code besides the
//! run-time compiler's.
//!
//! Functions are looked up in `libcuda.so.1` when first called. [`Context::open`] makes sure that
//! the library is there and new enough to have all of them.

use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;

use cudarc::driver::sys::{self, CUresult};

use crate::{Error, Result};

/// Checks the result of one call.
fn check(call: &'static str, result: CUresult) -> Result<()> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::Driver { call, reason: describe(result) })
}

fn describe(result: CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: on success `text` points at a string of the driver's that is never freed.
    let text = unsafe {
        match sys::cuGetErrorString(result, &mut text) {
            CUresult::CUDA_SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy(),
            _ => "unknown error".into(),
        }
    };
    let hint = match result {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => "; end other programs on the device",
        _ => "",
    };
    format!("{text} ({result:?}){hint}")
}

/// Calls a function of the driver and names it in the error.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        check(stringify!($name), sys::$name($($argument),*))
    };
}

mod graph;

pub(crate) use graph::{Graph, GraphBuilder};

/// An address in the device's memory.
pub(crate) type Address = u64;

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    pub(crate) name: String,
    /// Major and minor.
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    /// Bytes of shared memory that one block may ask for.
    pub(crate) shared: u32,
    /// Major and minor version of CUDA that the driver supports.
    pub(crate) driver: (u32, u32),
}

/// The primary context of one device, and a stream of its own on it.
pub(crate) struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
    stream: sys::CUstream,
    /// The number of the highest priority that kernels can have, 0 or less.
    highest: i32,
    pub(crate) properties: Properties,
}

impl Context {
    /// Opens device number `ordinal`.
    pub(crate) fn open(ordinal: usize) -> Result<Self> {
        // SAFETY: only asks the loader for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        let driver = driver_version()?;
        if driver.0 < 12 {
            return Err(Error::OldDriver { major: driver.0, minor: driver.1 });
        }
        // SAFETY: may be called any number of times.
        if unsafe { sys::cuInit(0) } == CUresult::CUDA_ERROR_NO_DEVICE {
            return Err(Error::NoDevice { wanted: ordinal, found: 0 });
        }
        // SAFETY: as above.
        unsafe { call!(cuInit(0)) }?;
        let mut found = 0;
        // SAFETY: the pointer is to a local variable.
        unsafe { call!(cuDeviceGetCount(&mut found)) }?;
        let found = usize::try_from(found).unwrap_or(0);
        if ordinal >= found {
            return Err(Error::NoDevice { wanted: ordinal, found });
        }
        let mut device = 0;
        // SAFETY: the pointer is to a local variable; there are more devices than `ordinal`.
        unsafe { call!(cuDeviceGet(&mut device, ordinal as i32)) }?;
        let properties = properties(device, driver)?;
        let (major, minor) = properties.capability;
        if major < 8 {
            return Err(Error::OldDevice { name: properties.name, major, minor });
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable, the device exists.
        unsafe { call!(cuDevicePrimaryCtxRetain(&mut raw, device)) }?;
        let mut context =
            Self { device, raw, stream: std::ptr::null_mut(), highest: 0, properties };
        context.enter()?;
        // SAFETY: the pointers are to a local variable and a field, and the context is current.
        unsafe { call!(cuCtxGetStreamPriorityRange(&mut 0, &mut context.highest)) }?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is to a field, and the context is current.
        unsafe { call!(cuStreamCreate(&mut context.stream, flags)) }?;
        Ok(context)
    }

    /// Whether kernels of a graph can get ready while those before them still run.
    pub(crate) fn can_prepare(&self) -> bool {
        self.properties.capability.0 >= 9 && self.properties.driver >= (12, 3)
    }

    /// Makes this thread use the context.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { call!(cuCtxSetCurrent(self.raw)) }
    }

    /// Waits for everything asked for so far.
    pub(crate) fn wait(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream lives as long as `self`.
        unsafe { call!(cuStreamSynchronize(self.stream)) }
    }

    /// Bytes that are free, and that there are.
    pub(crate) fn memory(&self) -> Result<(usize, usize)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to local variables.
        unsafe { call!(cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok((free, total))
    }

    /// Memory for `bytes` bytes; `None` if there is not as much.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Option<Address>> {
        self.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is to a local variable, and the context is current.
        match unsafe { sys::cuMemAlloc_v2(&mut address, bytes) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            result => check("cuMemAlloc_v2", result).map(|()| Some(address)),
        }
    }

    /// Gives memory back. Errors are of earlier work, and are reported by whatever waits for it.
    pub(crate) fn free(&self, address: Address) {
        if self.enter().is_ok() {
            // SAFETY: only called with addresses from `allocate` that nothing uses any more.
            let _ = unsafe { sys::cuMemFree_v2(address) };
        }
    }

    /// Copies to the device, in the order of the stream. `values` may be dropped right after.
    pub(crate) fn copy_in<T: bytemuck::NoUninit>(
        &self,
        target: Address,
        values: &[T],
    ) -> Result<()> {
        self.enter()?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let source = bytes.as_ptr().cast::<c_void>();
        // SAFETY: callers own `bytes.len()` bytes at `target`. The driver copies pageable memory
        // before it returns.
        unsafe { call!(cuMemcpyHtoDAsync_v2(target, source, bytes.len(), self.stream)) }
    }

    /// Asks for values from the device; they are there after [`wait`](Self::wait).
    pub(crate) fn copy_out<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
        &self,
        source: Address,
        values: &mut [T],
    ) -> Result<()> {
        self.enter()?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        let target = bytes.as_mut_ptr().cast::<c_void>();
        // SAFETY: callers own `bytes.len()` bytes at `source`. Copies to pageable memory are done
        // when the driver returns.
        unsafe { call!(cuMemcpyDtoHAsync_v2(target, source, bytes.len(), self.stream)) }
    }

    /// Loads compiled kernels.
    pub(crate) fn module(&self, image: &[u8]) -> Result<Module> {
        self.enter()?;
        let mut raw = std::ptr::null_mut();
        // PTX is read up to its end mark.
        let image = [image, &[0]].concat();
        // SAFETY: `image` is a whole cubin or a PTX text with its end mark.
        unsafe { call!(cuModuleLoadData(&mut raw, image.as_ptr().cast())) }?;
        Ok(Module { raw })
    }

    /// Starts a kernel.
    pub(crate) fn launch(&self, kernel: Kernel, shape: LaunchShape, packed: &Packed) -> Result<()> {
        self.enter()?;
        let LaunchShape { blocks: [x, y, z], threads, shared, cluster } = shape;
        let mut pointers = packed.pointers();
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: [0; 4],
            value: cluster_dimension(cluster),
        };
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: self.stream,
            attrs: &mut attribute,
            numAttrs: u32::from(cluster > 1),
        };
        let (pointers, none) = (pointers.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: `packed` holds the arguments that the kernel takes, by the tests of each
        // operation; the driver copies them before it returns.
        unsafe { call!(cuLaunchKernelEx(&config, kernel.raw, pointers, none)) }
    }

    /// Starts a graph.
    pub(crate) fn launch_graph(&self, graph: &Graph) -> Result<()> {
        self.enter()?;
        // SAFETY: the graph is instantiated; what its kernels use lives as long as it.
        unsafe { call!(cuGraphLaunch(graph.executable, self.stream)) }
    }

    /// A mark in the stream that knows its time.
    pub(crate) fn mark(&self) -> Result<Mark> {
        self.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable.
        unsafe { call!(cuEventCreate(&mut raw, 0)) }?;
        let mark = Mark { raw };
        // SAFETY: event and stream live.
        unsafe { call!(cuEventRecord(raw, self.stream)) }?;
        Ok(mark)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.enter().is_err() {
            return;
        }
        // SAFETY: nothing uses the stream or this retained context after `self`.
        unsafe {
            if !self.stream.is_null() {
                let _ = sys::cuStreamSynchronize(self.stream);
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

/// A moment in the stream.
pub(crate) struct Mark {
    raw: sys::CUevent,
}

impl Mark {
    /// Waits for both, and says how many milliseconds lie between them.
    pub(crate) fn milliseconds_since(&self, earlier: &Self) -> Result<f32> {
        let mut elapsed = 0.0;
        // SAFETY: both events were recorded in a stream of the current context.
        unsafe {
            call!(cuEventSynchronize(self.raw))?;
            call!(cuEventElapsedTime(&mut elapsed, earlier.raw, self.raw))?;
        }
        Ok(elapsed)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: the event was created and is destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}

/// Loaded kernels. They stay loaded as long as the context.
pub(crate) struct Module {
    raw: sys::CUmodule,
}

impl Module {
    /// The kernel of that name, allowed the `most` bytes of shared memory that a block may have.
    pub(crate) fn kernel(&self, name: &str, most: u32) -> Result<Kernel> {
        use sys::CUfunction_attribute as Attribute;
        let mut raw = std::ptr::null_mut();
        let name = CString::new(name).unwrap_or_default();
        let mut fixed = 0;
        // SAFETY: the module is loaded, the name ends with a zero; the function was just found.
        unsafe {
            call!(cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()))?;
            let size = Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
            call!(cuFuncGetAttribute(&mut fixed, size, raw))?;
            let dynamic = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            call!(cuFuncSetAttribute(raw, dynamic, most as i32 - fixed))?;
        }
        Ok(Kernel { raw })
    }
}

/// A loaded kernel.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    raw: sys::CUfunction,
}

/// How many blocks of how many threads, with how many bytes of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchShape {
    pub(crate) blocks: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) shared: u32,
    /// How many neighbouring blocks see each other's shared memory; 1 for kernels that know
    /// nothing of it.
    pub(crate) cluster: u32,
}

/// Clusters of that many blocks, as an attribute of a launch.
fn cluster_dimension(blocks: u32) -> sys::CUlaunchAttributeValue {
    let dimension = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: blocks, y: 1, z: 1 };
    sys::CUlaunchAttributeValue { clusterDim: dimension }
}

/// A kernel's arguments as they lie in memory.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// In whole words of 8 bytes, to which every argument is aligned.
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Packed {
    /// Adds one argument.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.starts.push(self.words.len());
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_ne_bytes(word));
        }
    }

    fn pointers(&self) -> Vec<*mut c_void> {
        let pointer = |&start: &usize| self.words[start..].as_ptr().cast_mut().cast();
        self.starts.iter().map(pointer).collect()
    }
}

fn driver_version() -> Result<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the pointer is to a local variable; allowed before `cuInit`.
    unsafe { call!(cuDriverGetVersion(&mut version)) }?;
    let version = version.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

fn properties(device: sys::CUdevice, driver: (u32, u32)) -> Result<Properties> {
    use sys::CUdevice_attribute as Attribute;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: the pointer is to a local variable, the device exists.
        unsafe { call!(cuDeviceGetAttribute(&mut value, attribute, device)) }?;
        Ok::<_, Error>(value.unsigned_abs())
    };
    let mut name = [MaybeUninit::new(0); 256];
    // SAFETY: there is room for 256 bytes; the driver ends the name with a zero.
    let name = unsafe {
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), 256, device))?;
        CStr::from_ptr(name.as_ptr().cast()).to_string_lossy().into_owned()
    };
    Ok(Properties {
        name,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        driver,
    })
}
