//! IQE: lengths of unions of intervals, by rows and by pairs.

use cm_nn::{Pairing, Result};

use super::arguments;
use super::layout::transposed;
use super::sides::Side;
use crate::backend::CudaBackend;
use crate::compile::Module::{Iqe, IqeEights, IqeRows};
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
        Argument::Struct(self.members(), 20)
    }

    pub(super) fn members(self) -> Vec<Argument> {
        vec![
            Argument::Unsigned(self.count as u32),
            Argument::Unsigned(self.size as u32),
            Argument::Float(self.total_weight),
            Argument::Float(self.maximum_weight),
            Argument::Signed(self.kind),
        ]
    }
}

/// Each group of each row of a matrix in ascending order.
struct Order {
    values: CudaTensor,
    index: CudaTensor,
}

impl Order {
    /// Of `x` times `sign`.
    fn new(backend: &CudaBackend, groups: Groups, x: &CudaTensor, sign: f32) -> Result<Self> {
        let (values, index) = (backend.new_tensor(x.shape)?, backend.new_tensor(x.shape)?);
        let size = groups.size as u32;
        let arguments = arguments![x.read(), values.write(), index.write(), x.count(), size, sign];
        backend.each(Iqe, "iqe_order", x.count(), arguments)?;
        Ok(Self { values, index })
    }
}

/// Which kernels do it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// By rows, groups of at most 32 features: they are sorted where they are used.
    Rows,
    OrderedRows,
    Pairs,
    /// Pairs with groups of eight features.
    Eights,
}

impl Kind {
    fn of(groups: Groups, pairing: Pairing, x: &CudaTensor, y: &CudaTensor) -> Self {
        let fits = OTHERS * groups.count * groups.size * 4 <= MOST_SHARED;
        let in_quads = x.has_whole_quads() && y.has_whole_quads();
        match pairing {
            Pairing::Rows if groups.size <= 32 => Self::Rows,
            Pairing::Rows => Self::OrderedRows,
            Pairing::All if groups.size == 8 && in_quads && fits => Self::Eights,
            Pairing::All => Self::Pairs,
        }
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
    let kind = Kind::of(groups, pairing, x, y);
    let result = backend.new_tensor(shape)?;
    let wanted = |wanted: bool| wanted.then(|| backend.new_tensor(shape)).transpose();
    let lengths = Lengths {
        totals: wanted(places[2].is_some())?,
        maxima: wanted(places[2].is_some())?,
        args: wanted(is_tracked && groups.kind != 0)?,
    };
    // Of pairs with groups of any size, neighbouring threads are at neighbouring rows of y.
    let right = match kind {
        Kind::Pairs => transposed(backend, y)?,
        _ => y.clone(),
    };
    let order = match kind {
        Kind::Rows => None,
        _ => Some(Order::new(backend, groups, x, 1.0)?),
    };
    let mut arguments = left_arguments(order.as_ref(), x);
    arguments.extend(arguments![
        right.read(),
        maybe_read(logit),
        result.write(),
        maybe_write(lengths.totals.as_ref()),
        maybe_write(lengths.maxima.as_ref()),
        maybe_write(lengths.args.as_ref())
    ]);
    let has_marks = kind == Kind::Rows && (places[0].is_some() || places[1].is_some());
    let marks = has_marks.then(|| backend.new_tensor([n, 2 * groups.count])).transpose()?;
    match kind {
        Kind::Rows => {
            arguments.extend(arguments![maybe_write(marks.as_ref()), groups.argument()]);
            let threads = groups.count.next_multiple_of(32).min(TOGETHER);
            // Both ends, with the features of groups an odd number apart.
            let shared = (2 * threads * (groups.size | 1) * 4) as u32;
            backend.run(IqeRows, "iqe_rows", n as u32, threads as u32, shared, arguments)?;
        }
        Kind::OrderedRows => {
            arguments.extend([Argument::Unsigned(n as u32), groups.argument()]);
            backend.warps(Iqe, "iqe_ordered_rows", n, arguments)?;
        }
        Kind::Pairs => {
            arguments.extend(arguments![n as u32, m as u32, groups.argument()]);
            let blocks = (n * m.div_ceil(128)) as u32;
            backend.run(Iqe, "iqe_pairs", blocks, 128, 0, arguments)?;
        }
        Kind::Eights => {
            arguments.extend(arguments![n as u32, m as u32, groups.argument()]);
            let blocks = (n.div_ceil(32) * m.div_ceil(OTHERS)) as u32;
            let shared = (OTHERS * groups.count * groups.size * 4) as u32;
            backend.run(IqeEights, "iqe_eights", blocks, THREADS as u32, shared, arguments)?;
        }
    }
    let (logit, left) = (logit.cloned(), x.clone());
    Ok(backend.record(result, &places, || {
        move |backend: &CudaBackend, slots: &mut Slots, grad: CudaTensor| {
            let rows = [n, m];
            let backward = Backward { groups, order, left, right, logit, grad, lengths, rows };
            match kind {
                Kind::Rows => backward.sides(marks.as_ref(), places, slots),
                Kind::OrderedRows => backward.rows(backend, places, slots)?,
                Kind::Pairs => backward.pairs(backend, places, slots)?,
                Kind::Eights => backward.eights(backend, places, slots)?,
            }
            backward.logit(backend, places[2], slots)
        }
    }))
}

/// The left ends in order, or as they are.
fn left_arguments(order: Option<&Order>, x: &CudaTensor) -> Vec<Argument> {
    match order {
        Some(Order { values, index }) => arguments![values.read(), index.read()],
        None => arguments![x.read()],
    }
}

/// The gradients of one operation.
struct Backward {
    groups: Groups,
    /// Of the left ends; none by rows with groups of at most 32 features.
    order: Option<Order>,
    left: CudaTensor,
    right: CudaTensor,
    logit: Option<CudaTensor>,
    grad: CudaTensor,
    lengths: Lengths,
    /// Rows of `x` and of `y`.
    rows: [usize; 2],
}

/// Bytes of shared memory that every device gives without being asked.
const SHARED: usize = 48 * 1024;
/// How much `iqe_eights` asks for at most.
const MOST_SHARED: usize = 96 * 1024;
const THREADS: usize = 256;
/// As in `iqe_eights.cu`.
const OTHERS: usize = 8;
/// As in `iqe_rows.cu`.
const TOGETHER: usize = 128;

impl Backward {
    fn arguments(&self) -> Vec<Argument> {
        let mut arguments = left_arguments(self.order.as_ref(), &self.left);
        arguments.extend(arguments![
            self.right.read(),
            maybe_read(self.logit.as_ref()),
            self.grad.read(),
            maybe_read(self.lengths.args.as_ref())
        ]);
        arguments
    }

    fn width(&self) -> usize {
        self.groups.count * self.groups.size
    }

    /// By rows, of which a kernel has marked the ends.
    fn sides(&self, marks: Option<&CudaTensor>, places: [Option<Place>; 3], slots: &mut Slots) {
        for (place, right) in places.into_iter().zip([false, true]) {
            if let (Some(place), Some(marks)) = (place, marks) {
                let (marks, grad) = (marks.clone(), self.grad.clone());
                let (args, logit) = (self.lengths.args.clone(), self.logit.clone());
                let rows = self.rows[0];
                let side = Side { groups: self.groups, rows, marks, grad, args, logit, right };
                slots.add_side(place, side);
            }
        }
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
        let count = self.rows[0] * self.groups.count;
        backend.each(Iqe, "iqe_ordered_rows_gradient", count as u32, arguments)?;
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

    fn eights(
        &self,
        backend: &CudaBackend,
        places: [Option<Place>; 3],
        slots: &mut Slots,
    ) -> Result<()> {
        let run = |kernel, order, others: &CudaTensor, rows: usize| -> Result<CudaTensor> {
            let gradient = backend.new_tensor([rows, self.width()])?;
            let mut arguments = left_arguments(order, others);
            arguments.extend(arguments![
                others.read(),
                maybe_read(self.logit.as_ref()),
                self.grad.read(),
                maybe_read(self.lengths.args.as_ref()),
                gradient.write(),
                self.rows[0] as u32,
                self.rows[1] as u32,
                self.groups.argument()
            ]);
            let blocks = (rows.div_ceil(32) * self.groups.count) as u32;
            backend.run(IqeEights, kernel, blocks, THREADS as u32, 0, arguments)?;
            Ok(gradient)
        };
        if let Some(place) = places[0] {
            slots.add(place, run("iqe_eights_x", self.order.as_ref(), &self.right, self.rows[0])?);
        }
        if let Some(place) = places[1] {
            let order = Order::new(backend, self.groups, &self.right, -1.0)?;
            slots.add(place, run("iqe_eights_y", Some(&order), &self.left, self.rows[1])?);
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
