//! A step that was recorded once and runs as one graph.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::abreast::store_abreast;
use crate::arena::{self, Request};
use crate::backend::CudaBackend;
use crate::distances::join_distances;
use crate::driver::{Graph, GraphBuilder};
use crate::fuse::join_chains;
use crate::launch::{Launch, Use};
use crate::logits::join_logits;
use crate::memory::{Arena, Buffer};
use crate::operands::{Operands, skip_unread};
use crate::schedule::Order;
use crate::share::share;
use crate::tensor::CudaTensor;
use crate::{Device, Error, Result, profile};

/// The kernels of a step, in the order they were asked for.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) launches: Vec<Launch>,
    pub(crate) operands: Operands,
}

impl Recorder {
    pub(crate) fn push(&mut self, launch: Launch) {
        launch.each_use(|buffer, what| {
            if what != Use::Read {
                self.operands.forget(buffer);
            }
        });
        self.launches.push(launch);
    }

    /// Which kernel was the last to write to the matrix's buffer.
    pub(crate) fn last_writer(&self, x: &CudaTensor) -> Option<usize> {
        let number = x.view.buffer.number();
        self.launches.iter().rposition(|launch| launch.writes(number))
    }
}

/// A step that can run again and again.
pub(crate) struct Recorded {
    graph: Graph,
    /// Keeps every buffer that the graph uses.
    launches: Vec<Launch>,
    /// Of a step whose profile is still to be printed.
    profile: Cell<Option<Order>>,
}

impl Recorded {
    /// Plans the memory of what was recorded and builds the graph. Buffers that are held by others
    /// as well keep their values after the step.
    fn new(device: &Device, mut launches: Vec<Launch>) -> Result<Self> {
        let begins_with_one = begin_with_one(&mut launches);
        let order = order_of(&launches);
        place_buffers(device, &launches, &order)?;
        let mut graph = GraphBuilder::new(device.context())?;
        // What has the longest way to go comes first.
        let following = order.following();
        let longest = following.iter().copied().max().unwrap_or(0).max(1);
        for (step, launch) in launches.iter().enumerate() {
            let urgency = following[step] as f32 / longest as f32;
            let after = match order.waits(step) {
                [] if begins_with_one && step > 0 => &[0],
                waits => waits,
            };
            device.add_to_graph(&mut graph, launch, after, urgency)?;
        }
        let profile = Cell::new(Some(order).filter(|_| profile::is_wanted()));
        Ok(Self { graph: graph.finish()?, launches, profile })
    }

    /// How many kernels it has.
    pub(crate) fn len(&self) -> usize {
        self.launches.len()
    }
}

fn order_of(launches: &[Launch]) -> Order {
    Order::new(&launches.iter().map(uses).collect::<Vec<_>>())
}

/// Whether all others should wait for the first kernel. The driver starts kernels that wait for
/// nothing one at a time, which takes longer than to wait for one of them: that of the fewest blocks
/// is put first.
fn begin_with_one(launches: &mut [Launch]) -> bool {
    /// So many take as long.
    const FEW: usize = 4;
    let order = order_of(launches);
    let beginning =
        (0..launches.len()).filter(|&step| order.waits(step).is_empty()).collect::<Vec<_>>();
    let blocks = |step: &&usize| launches[**step].shape.blocks.iter().product::<u32>();
    match beginning.iter().min_by_key(blocks) {
        Some(&smallest) if beginning.len() > FEW => {
            launches[..=smallest].rotate_right(1);
            true
        }
        _ => false,
    }
}

fn uses(launch: &Launch) -> Vec<(u64, Use)> {
    let mut uses = Vec::new();
    launch.each_use(|buffer, what| uses.push((buffer.number(), what)));
    uses
}

/// Gives every buffer that has no memory yet its place.
fn place_buffers(device: &Device, launches: &[Launch], order: &Order) -> Result<()> {
    /// A buffer, the steps that use it, and how often it occurs in them.
    struct Planned {
        buffer: Rc<Buffer>,
        steps: Vec<usize>,
        occurrences: usize,
    }
    let mut planned = BTreeMap::<u64, Planned>::new();
    for (step, launch) in launches.iter().enumerate() {
        launch.each_use(|buffer, _| {
            if buffer.is_placed() {
                return;
            }
            let entry = planned.entry(buffer.number()).or_insert_with(|| Planned {
                buffer: buffer.clone(),
                steps: Vec::new(),
                occurrences: 0,
            });
            entry.occurrences += 1;
            if entry.steps.last() != Some(&step) {
                entry.steps.push(step);
            }
        });
    }
    let requests = planned.values().map(|planned| Request {
        bytes: planned.buffer.bytes(),
        steps: planned.steps.clone(),
        // One more is the clone in `planned`.
        is_kept: Rc::strong_count(&planned.buffer) > planned.occurrences + 1,
    });
    let requests = requests.collect::<Vec<_>>();
    let plan = arena::plan(&requests, order);
    let arena = Rc::new(Arena::new(device.pool(), plan.bytes)?);
    for (planned, offset) in planned.values().zip(plan.offsets) {
        planned.buffer.place(&arena, offset);
    }
    Ok(())
}

impl CudaBackend {
    /// Records `step`, which runs nothing yet.
    pub(crate) fn record_step<T>(
        &self,
        step: &mut dyn FnMut() -> cm_nn::Result<T>,
    ) -> cm_nn::Result<(T, Recorded)> {
        self.outside_capture("another captured step", "capture both as one")?;
        if self.scope().borrow().is_some() {
            return Err(Error::InsideGradients.into());
        }
        *self.recorder().borrow_mut() = Some(Recorder::default());
        let open = OpenRecorder(self);
        let result = step()?;
        let Recorder { launches, operands } =
            self.recorder().borrow_mut().take().unwrap_or_default();
        drop(open);
        let mut launches = share(operands.with_early(self, launches));
        skip_unread(&mut launches);
        let launches = join_distances(join_logits(join_chains(launches)));
        let launches = store_abreast(launches);
        let recorded = Recorded::new(self.device(), launches)?;
        Ok((result, recorded))
    }

    /// Runs a recorded step.
    pub(crate) fn replay(&self, recorded: &Recorded) -> cm_nn::Result<()> {
        self.outside_capture("another captured step", "capture both as one")?;
        if recorded.len() > 0 {
            self.device().context().launch_graph(&recorded.graph)?;
        }
        if let Some(order) = recorded.profile.take() {
            profile::print(self.device(), &recorded.launches, &order)?;
        }
        Ok(())
    }
}

/// Ends the recording however the step ends.
struct OpenRecorder<'a>(&'a CudaBackend);

impl Drop for OpenRecorder<'_> {
    fn drop(&mut self) {
        self.0.recorder().borrow_mut().take();
    }
}
