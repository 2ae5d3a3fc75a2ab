//! IQE: lengths of unions of intervals, by rows and by pairs.

use cm_nn::{Pairing, Result};

use super::arguments;
use super::layout::transposed;
use crate::backend::CudaBackend;
use crate::compile::Module::Iqe;
use crate::launch::Argument;
use crate::tape::{Place, Slots};
use crate::tensor::{CudaTensor, maybe_read, maybe_write};

/// How the features are divided and the groups reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) count: usize,
    /// Features, that is intervals, of one group.
    pub(crate) size: usize,
    pub(crate) total_weight: f32,
    pub(crate) maximum_weight: f32,
    /// 0 if only the total counts, 1 if only the maximum, 2 if both.
    pub(crate) kind: i32,
}

impl Groups {
    /// `struct Groups` of the kernels.
    fn argument(self) -> Argument {
        let members = vec![
            Argument::Unsigned(self.count as u32),
            Argument::Unsigned(self.size as u32),
            Argument::Float(self.total_weight),
            Argument::Float(self.maximum_weight),
            Argument::Signed(self.kind),
        ];
        Argument::Struct(members, 20)
    }
}

/// Each group of each row of `x` in ascending order.
#[derive(Clone)]
struct Order {
    values: CudaTensor,
    index: CudaTensor,
}

impl Order {
    fn new(backend: &CudaBackend, groups: Groups, x: &CudaTensor) -> Result<Self> {
        let (values, index) = (backend.new_tensor(x.shape)?, backend.new_tensor(x.shape)?);
        let size = groups.size as u32;
        let arguments = arguments![x.read(), values.write(), index.write(), x.count(), size];
        backend.each(Iqe, "iqe_order", x.count(), arguments)?;
        Ok(Self { values, index })
    }
}

/// What the gradients need of each pair's (or row's) groups.
struct Lengths {
    totals: Option<CudaTensor>,
    maxima: Option<CudaTensor>,
    args: Option<CudaTensor>,
}

pub(crate) fn distances(
    backend: &CudaBackend,
    groups: Groups,
    pairing: Pairing,
    x: &CudaTensor,
    y: &CudaTensor,
    logit: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(y), logit.and_then(|logit| backend.place(logit))];
    let is_tracked = places.iter().any(Option::is_some);
    let (n, m) = (x.shape[0], y.shape[0]);
    let shape = match pairing {
        Pairing::Rows => [n, 1],
        Pairing::All => [n, m],
    };
    let order = Order::new(backend, groups, x)?;
    let result = backend.new_tensor(shape)?;
    let wanted = |wanted: bool| wanted.then(|| backend.new_tensor(shape)).transpose();
    let lengths = Lengths {
        totals: wanted(places[2].is_some())?,
        maxima: wanted(places[2].is_some())?,
        args: wanted(is_tracked && groups.kind != 0)?,
    };
    // Of pairs, neighbouring threads are at neighbouring rows of y.
    let right = match pairing {
        Pairing::Rows => y.clone(),
        Pairing::All => transposed(backend, y)?,
    };
    let mut arguments = arguments![
        order.values.read(),
        order.index.read(),
        right.read(),
        maybe_read(logit),
        result.write(),
        maybe_write(lengths.totals.as_ref()),
        maybe_write(lengths.maxima.as_ref()),
        maybe_write(lengths.args.as_ref()),
        n as u32
    ];
    match pairing {
        Pairing::Rows => {
            arguments.push(groups.argument());
            backend.warps(Iqe, "iqe_rows", n, arguments)?;
        }
        Pairing::All => {
            arguments.extend([Argument::Unsigned(m as u32), groups.argument()]);
            let blocks = (n * m.div_ceil(128)) as u32;
            backend.run(Iqe, "iqe_pairs", blocks, 128, 0, arguments)?;
        }
    }
    let logit = logit.cloned();
    Ok(backend.record(result, &places, || {
        move |backend: &CudaBackend, slots: &mut Slots, grad: CudaTensor| {
            let backward = Backward { groups, order, right, logit, grad, lengths, rows: [n, m] };
            match pairing {
                Pairing::Rows => backward.rows(backend, places, slots)?,
                Pairing::All => backward.pairs(backend, places, slots)?,
            }
            backward.logit(backend, places[2], slots)
        }
    }))
}

/// The gradients of one operation.
struct Backward {
    groups: Groups,
    order: Order,
    right: CudaTensor,
    logit: Option<CudaTensor>,
    grad: CudaTensor,
    lengths: Lengths,
    /// Rows of `x` and of `y`.
    rows: [usize; 2],
}

/// Bytes of shared memory that every device gives without being asked.
const SHARED: usize = 48 * 1024;
const THREADS: usize = 256;

impl Backward {
    fn arguments(&self) -> Vec<Argument> {
        arguments![
            self.order.values.read(),
            self.order.index.read(),
            self.right.read(),
            maybe_read(self.logit.as_ref()),
            self.grad.read(),
            maybe_read(self.lengths.args.as_ref())
        ]
    }

    fn width(&self) -> usize {
        self.groups.count * self.groups.size
    }

    fn rows(
        &self,
        backend: &CudaBackend,
        places: [Option<Place>; 3],
        slots: &mut Slots,
    ) -> Result<()> {
        if places[0].is_none() && places[1].is_none() {
            return Ok(());
        }
        let shape = [self.rows[0], self.width()];
        let (dx, dy) = (backend.new_tensor(shape)?, backend.new_tensor(shape)?);
        let mut arguments = self.arguments();
        arguments.extend(arguments![
            dx.update(),
            dy.update(),
            self.rows[0] as u32,
            self.groups.argument()
        ]);
        let count = (self.rows[0] * self.groups.count) as u32;
        backend.each(Iqe, "iqe_rows_gradient", count, arguments)?;
        for (place, gradient) in places.into_iter().zip([dx, dy]) {
            if let Some(place) = place {
                slots.add(place, gradient);
            }
        }
        Ok(())
    }

    fn pairs(
        &self,
        backend: &CudaBackend,
        places: [Option<Place>; 3],
        slots: &mut Slots,
    ) -> Result<()> {
        let [n, m] = self.rows;
        let (width, count) = (self.width(), self.groups.count);
        if let Some(place) = places[0] {
            let blocks = (n * count).div_ceil(THREADS / 32);
            let dx = self.side(backend, "iqe_gradient_x", [n, width], blocks, 32 * n * width)?;
            slots.add(place, dx);
        }
        if let Some(place) = places[1] {
            let blocks = count * m.div_ceil(32);
            let dy = self.side(backend, "iqe_gradient_y", [m, width], blocks, m * width)?;
            slots.add(place, dy);
        }
        Ok(())
    }

    /// One side's gradient, of shape `shape`. The running sums of all threads lie in shared memory,
    /// or in `scratch` numbers if a group is too large for that.
    fn side(
        &self,
        backend: &CudaBackend,
        kernel: &'static str,
        shape: [usize; 2],
        blocks: usize,
        scratch: usize,
    ) -> Result<CudaTensor> {
        let gradient = backend.new_tensor(shape)?;
        let shared = self.groups.size * THREADS * 4;
        let is_large = shared > SHARED;
        let sums = is_large.then(|| backend.new_tensor([1, scratch])).transpose()?;
        let mut arguments = self.arguments();
        arguments.extend(arguments![
            gradient.write(),
            maybe_write(sums.as_ref()),
            self.rows[0] as u32,
            self.rows[1] as u32,
            self.groups.argument()
        ]);
        let shared = if is_large { 0 } else { shared as u32 };
        backend.run(Iqe, kernel, blocks as u32, THREADS as u32, shared, arguments)?;
        Ok(gradient)
    }

    fn logit(&self, backend: &CudaBackend, place: Option<Place>, slots: &mut Slots) -> Result<()> {
        let (Some(place), Some(logit)) = (place, &self.logit) else { return Ok(()) };
        let d_logit = backend.new_tensor([1, 1])?;
        let arguments = arguments![
            self.grad.read(),
            maybe_read(self.lengths.totals.as_ref()),
            maybe_read(self.lengths.maxima.as_ref()),
            logit.read(),
            d_logit.write(),
            self.grad.count(),
            self.groups.count as u32
        ];
        backend.run(Iqe, "iqe_logit_gradient", 1, 1024, 0, arguments)?;
        slots.add(place, d_logit);
        Ok(())
    }
}
