//! A GPU: its memory and its kernels.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::Result;
use crate::compile::{Kernels, Module, cache_directory};
use crate::driver::{self, Context, GraphBuilder};
use crate::launch::Launch;
use crate::memory::Pool;

/// A GPU that was opened. Cloning shares it; it stays on one thread.
///
/// ```
/// match cm_cuda::Device::open(0) {
///     Ok(device) => println!("{}", device.info().name),
///     Err(error) => println!("no GPU: {error}"),
/// }
/// ```
#[derive(Clone)]
pub struct Device {
    inner: Rc<Inner>,
}

struct Inner {
    context: Rc<Context>,
    pool: Rc<Pool>,
    kernels: Kernels,
    modules: RefCell<BTreeMap<Module, Loaded>>,
}

/// A loaded file of kernels.
struct Loaded {
    module: driver::Module,
    found: HashMap<&'static str, driver::Kernel>,
}

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    /// The version of CUDA that its driver supports, major and minor.
    pub driver: (u32, u32),
}

impl Device {
    /// Opens device number `ordinal`. The errors say what is missing and what to do.
    pub fn open(ordinal: usize) -> Result<Self> {
        let context = Rc::new(Context::open(ordinal)?);
        let properties = &context.properties;
        let kernels = Kernels::new(properties.capability, properties.driver, cache_directory());
        let pool = Rc::new(Pool::new(&context));
        let modules = RefCell::default();
        Ok(Self { inner: Rc::new(Inner { context, pool, kernels, modules }) })
    }

    /// What is known of it.
    pub fn info(&self) -> DeviceInfo {
        let properties = &self.inner.context.properties;
        DeviceInfo {
            name: properties.name.clone(),
            capability: properties.capability,
            driver: properties.driver,
        }
    }

    /// Bytes of its memory that this device's matrices and recorded steps hold.
    pub fn held_bytes(&self) -> usize {
        self.inner.pool.held()
    }

    /// Waits until everything asked for is done.
    pub fn wait(&self) -> Result<()> {
        self.inner.context.wait()
    }

    /// Runs `work` and returns its result and the milliseconds between its beginning and its end on
    /// the device.
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> Result<(T, f32)> {
        let start = self.inner.context.mark()?;
        let result = work();
        let end = self.inner.context.mark()?;
        Ok((result, end.milliseconds_since(&start)?))
    }

    pub(crate) fn context(&self) -> &Rc<Context> {
        &self.inner.context
    }

    pub(crate) fn pool(&self) -> &Rc<Pool> {
        &self.inner.pool
    }

    pub(crate) fn properties(&self) -> &driver::Properties {
        &self.inner.context.properties
    }

    /// Whether kernels may use what only Hopper has: products of warpgroups, in clusters of blocks.
    pub(crate) fn has_warpgroups(&self) -> bool {
        self.inner.kernels.has_warpgroups()
    }

    /// Starts a kernel.
    pub(crate) fn launch(&self, launch: &Launch) -> Result<()> {
        let kernel = self.kernel(launch)?;
        self.inner.context.launch(kernel, launch.shape, &launch.pack()?)
    }

    /// Adds a kernel to a graph, as [`GraphBuilder::push`] has it.
    pub(crate) fn add_to_graph(
        &self,
        graph: &mut GraphBuilder<'_>,
        launch: &Launch,
        after: &[usize],
        urgency: f32,
    ) -> Result<()> {
        graph.push(self.kernel(launch)?, launch.shape, &launch.pack()?, after, urgency)
    }

    fn kernel(&self, launch: &Launch) -> Result<driver::Kernel> {
        let mut modules = self.inner.modules.borrow_mut();
        let loaded = match modules.entry(launch.module) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let image = self.inner.kernels.image(launch.module)?;
                let module = self.inner.context.module(&image)?;
                entry.insert(Loaded { module, found: HashMap::new() })
            }
        };
        if let Some(kernel) = loaded.found.get(launch.kernel) {
            return Ok(*kernel);
        }
        let kernel = loaded.module.kernel(launch.kernel, self.properties().shared)?;
        loaded.found.insert(launch.kernel, kernel);
        Ok(kernel)
    }
}
