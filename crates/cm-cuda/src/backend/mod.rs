//! [`CudaBackend`]: cm-nn's operations on a GPU.

mod operations;

use std::cell::RefCell;
use std::rc::Rc;

use cm_nn::Shape;

use crate::capture::Recorder;
use crate::compile::Module;
use crate::driver::LaunchShape;
use crate::launch::{Argument, Launch, Use, View};
use crate::memory::Buffer;
use crate::ops;
use crate::tape::Scope;
use crate::tensor::{CudaCell, CudaTensor, checked_length};
use crate::{Device, Precision, Result};

/// cm-nn's operations on a GPU, for one seed or several at once. Cloning shares it.
///
/// Outside of a captured step every operation runs when it is called. Inside, operations are
/// recorded, and the step runs as one graph.
#[derive(Clone)]
pub struct CudaBackend {
    inner: Rc<Inner>,
}

struct Inner {
    device: Device,
    seeds: Vec<u64>,
    /// The seeds and the step on the device, each in two words of 32 bits.
    seeds_buffer: Rc<Buffer>,
    step_buffer: Rc<Buffer>,
    precision: Precision,
    /// The tape of the gradients that are being taken.
    scope: RefCell<Option<Scope>>,
    /// The step that is being recorded.
    recorder: RefCell<Option<Recorder>>,
}

/// Replicas are the third dimension of a launch.
const MOST_REPLICAS: usize = 65_535;
/// Threads of a block of kernels that take any number of elements.
const THREADS: u32 = 256;
/// Most blocks of such kernels; more elements are taken in turns.
const MOST_BLOCKS: u32 = 1 << 14;

impl CudaBackend {
    /// A backend whose draws are keyed by `seeds`, one replica for each, at step 0.
    pub fn new(device: &Device, seeds: &[u64], precision: Precision) -> cm_nn::Result<Self> {
        if seeds.is_empty() || seeds.len() > MOST_REPLICAS {
            let (what, expected) = ("seeds of a backend", format!("1 to {MOST_REPLICAS}"));
            return Err(cm_nn::Error::Replicas { what, expected, found: seeds.len() });
        }
        let seeds_buffer = Buffer::taken(device.pool(), 2 * seeds.len(), 1)?;
        device.context().copy_in(seeds_buffer.address()?, seeds)?;
        let step_buffer = Buffer::taken(device.pool(), 2, 1)?;
        device.context().copy_in(step_buffer.address()?, &[0_u64])?;
        let inner = Inner {
            device: device.clone(),
            seeds: seeds.to_vec(),
            seeds_buffer: Rc::new(seeds_buffer),
            step_buffer: Rc::new(step_buffer),
            precision,
            scope: RefCell::new(None),
            recorder: RefCell::new(None),
        };
        Ok(Self { inner: Rc::new(inner) })
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// How exactly products are computed.
    pub fn precision(&self) -> Precision {
        self.inner.precision
    }

    pub(crate) fn replicas(&self) -> usize {
        self.inner.seeds.len()
    }

    pub(crate) fn scope(&self) -> &RefCell<Option<Scope>> {
        &self.inner.scope
    }

    pub(crate) fn recorder(&self) -> &RefCell<Option<Recorder>> {
        &self.inner.recorder
    }

    /// Refuses an operation that a recording could not repeat.
    pub(crate) fn outside_capture(
        &self,
        operation: &'static str,
        instead: &'static str,
    ) -> cm_nn::Result<()> {
        match *self.recorder().borrow() {
            Some(_) => Err(cm_nn::Error::InsideCapture { operation, instead }),
            None => Ok(()),
        }
    }

    /// A matrix of every replica, with undefined values.
    pub(crate) fn new_tensor(&self, shape: Shape) -> Result<CudaTensor> {
        self.new_buffer(shape, self.replicas())
    }

    fn new_buffer(&self, shape: Shape, copies: usize) -> Result<CudaTensor> {
        let length = checked_length(shape)?;
        let buffer = match *self.recorder().borrow() {
            Some(_) => Buffer::planned(length, copies),
            None => Buffer::taken(self.device().pool(), length, copies)?,
        };
        let view = View { buffer: Rc::new(buffer), offset: 0 };
        Ok(CudaTensor { view, shape, place: None })
    }

    /// A matrix of one value that is never overwritten: made once, even in a recorded step.
    pub(crate) fn constant(&self, shape: Shape, value: f32) -> Result<CudaTensor> {
        let buffer = Buffer::taken(self.device().pool(), checked_length(shape)?, 1)?;
        let view = View { buffer: Rc::new(buffer), offset: 0 };
        let y = CudaTensor { view, shape, place: None };
        let arguments = ops::arguments![y.write(), y.count(), value];
        let shape = elementwise_shape(y.count(), 1);
        let kernel = "fill";
        let launch = Launch { module: Module::Elementwise, kernel, shape, arguments };
        self.device().launch(&launch)?;
        Ok(y)
    }

    pub(crate) fn stop(&self, x: &CudaTensor) -> CudaTensor {
        CudaTensor { place: None, ..x.clone() }
    }

    /// The seeds, for kernels that draw.
    pub(crate) fn seeds_argument(&self) -> Argument {
        let view = View { buffer: self.inner.seeds_buffer.clone(), offset: 0 };
        Argument::Pointer(view, Use::Read)
    }

    /// The step, for kernels that draw.
    pub(crate) fn step_argument(&self, what: Use) -> Argument {
        let view = View { buffer: self.inner.step_buffer.clone(), offset: 0 };
        Argument::Pointer(view, what)
    }

    /// Runs a kernel for every replica, or records it.
    pub(crate) fn run(
        &self,
        module: Module,
        kernel: &'static str,
        blocks: u32,
        threads: u32,
        shared: u32,
        arguments: Vec<Argument>,
    ) -> cm_nn::Result<()> {
        let blocks = [blocks, 1, self.replicas() as u32];
        let shape = LaunchShape { blocks, threads, shared, cluster: 1 };
        self.run_shaped(module, kernel, shape, arguments)
    }

    /// Runs a kernel, or records it.
    pub(crate) fn run_shaped(
        &self,
        module: Module,
        kernel: &'static str,
        shape: LaunchShape,
        arguments: Vec<Argument>,
    ) -> cm_nn::Result<()> {
        self.submit(Launch { module, kernel, shape, arguments })
    }

    /// Runs a kernel that takes `count` elements in any number of blocks.
    pub(crate) fn each(
        &self,
        module: Module,
        kernel: &'static str,
        count: u32,
        arguments: Vec<Argument>,
    ) -> cm_nn::Result<()> {
        let shape = elementwise_shape(count, self.replicas());
        self.submit(Launch { module, kernel, shape, arguments })
    }

    /// Runs a kernel of which each warp takes one of `count` rows.
    pub(crate) fn warps(
        &self,
        module: Module,
        kernel: &'static str,
        count: usize,
        arguments: Vec<Argument>,
    ) -> cm_nn::Result<()> {
        let warps = warps_of_block(count * self.replicas());
        self.run(module, kernel, count.div_ceil(warps) as u32, 32 * warps as u32, 0, arguments)
    }

    /// Runs one thread of a kernel that all replicas share.
    pub(crate) fn run_once(
        &self,
        module: Module,
        kernel: &'static str,
        arguments: Vec<Argument>,
    ) -> cm_nn::Result<()> {
        let shape = LaunchShape { blocks: [1; 3], threads: 1, shared: 0, cluster: 1 };
        self.submit(Launch { module, kernel, shape, arguments })
    }

    pub(crate) fn submit(&self, launch: Launch) -> cm_nn::Result<()> {
        match &mut *self.recorder().borrow_mut() {
            Some(recorder) => recorder.push(launch),
            None => self.device().launch(&launch)?,
        }
        Ok(())
    }

    /// A matrix of `columns` columns for each of the `values`, or one for all replicas; shorter
    /// ones end with undefined rows.
    pub(crate) fn upload_all<'v>(
        &self,
        columns: usize,
        values: impl ExactSizeIterator<Item = &'v [f32]> + Clone,
    ) -> cm_nn::Result<CudaTensor> {
        self.outside_capture("uploading data", "upload it before the step")?;
        let (copies, what) = (values.len(), "data sets");
        if copies != 1 && copies != self.replicas() {
            let expected = format!("one, or one for each of {} replicas", self.replicas());
            return Err(cm_nn::Error::Replicas { what, expected, found: copies });
        }
        let rows = values.clone().map(|values| values.len() / columns).max().unwrap_or(0);
        let tensor = self.new_buffer([rows, columns], copies)?;
        for (replica, values) in values.enumerate() {
            let buffer = &tensor.view.buffer;
            let place = buffer.address()? + 4 * (replica * buffer.stride) as u64;
            self.device().context().copy_in(place, values)?;
        }
        Ok(tensor)
    }

    /// Asks for the values of every replica; they are there after a wait.
    fn download(&self, x: &CudaTensor) -> Result<Vec<f32>> {
        let View { buffer, offset } = &x.view;
        let (start, count) = (buffer.address()?, x.count() as usize);
        let mut values = vec![0.0; count * self.replicas()];
        for (replica, values) in values.chunks_exact_mut(count).enumerate() {
            let place = start + 4 * (replica * buffer.stride + offset) as u64;
            self.device().context().copy_out(place, values)?;
        }
        Ok(values)
    }

    /// Overwrites what one replica has in a cell.
    fn upload(&self, cell: &CudaCell, replica: usize, values: &[f32]) -> Result<()> {
        let place = cell.buffer.address()? + 4 * (replica * cell.buffer.stride) as u64;
        self.device().context().copy_in(place, values)
    }
}

/// Warps of a block where each has a row, of `rows` in all replicas: of many small blocks a device
/// starts about one in 5 ns.
fn warps_of_block(rows: usize) -> usize {
    if rows < 1024 { 4 } else { 8 }
}

/// Blocks of 256 threads, at most as many as keep a device busy.
pub(crate) fn elementwise_shape(count: u32, replicas: usize) -> LaunchShape {
    let blocks = count.div_ceil(THREADS).clamp(1, MOST_BLOCKS);
    let blocks = [blocks, 1, replicas as u32];
    LaunchShape { blocks, threads: THREADS, shared: 0, cluster: 1 }
}
