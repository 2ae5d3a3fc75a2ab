//! Gradients: a tape of what to do backwards, and the sums that arrive at each matrix.

use std::sync::atomic::{AtomicU64, Ordering};

use cm_nn::{Error, Result, Shape};

use crate::backend::CudaBackend;
use crate::ops::elementwise::{MOST_CHAINED, Part, add_parts, fill};
use crate::ops::product::Product;
use crate::ops::sides::{Rows, Side, add_sides};
use crate::tensor::{CudaCell, CudaTensor};

/// A matrix's place on the tape of one call of `gradients`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    scope: u64,
    slot: usize,
}

type Step = Box<dyn FnOnce(&CudaBackend, &mut Slots) -> Result<()>>;

/// One call of `gradients`.
pub(crate) struct Scope {
    number: u64,
    steps: Vec<Step>,
    slots: usize,
    /// The buffer's number and the place of each wanted cell.
    wanted: Vec<(u64, Place)>,
}

impl Scope {
    fn new_place(&mut self) -> Place {
        self.slots += 1;
        Place { scope: self.number, slot: self.slots - 1 }
    }
}

/// What has arrived of the gradient of each matrix on the tape.
pub(crate) struct Slots {
    arrived: Vec<Vec<Contribution>>,
    /// How many of the first are those of wanted cells.
    wanted: usize,
}

/// A part of a gradient.
enum Contribution {
    Rows(Rows),
    /// A product that is computed when it is known what else it is added to or multiplied by.
    Product(Box<Product>),
}

impl Slots {
    /// Whether these are wanted cells, whose gradients are taken when the tape has ended.
    pub(crate) fn are_wanted(&self, places: [Place; 2]) -> bool {
        places.iter().all(|place| place.slot < self.wanted)
    }

    /// Whether products are part of the gradient at `place`.
    fn has_products(&self, place: Place) -> bool {
        let arrived = &self.arrived[place.slot];
        arrived.iter().any(|part| matches!(part, Contribution::Product(_)))
    }

    /// Adds to the gradient of the matrix at `place`.
    pub(crate) fn add(&mut self, place: Place, tensor: CudaTensor) {
        self.add_rows(place, tensor, 0);
    }

    /// Adds to the rows from `first_row` on.
    pub(crate) fn add_rows(&mut self, place: Place, tensor: CudaTensor, first_row: usize) {
        self.arrived[place.slot].push(Contribution::Rows(Rows::Matrix { tensor, first_row }));
    }

    /// Adds one side of distances by rows, which is computed when it is known what else it is
    /// added to.
    pub(crate) fn add_side(&mut self, place: Place, side: Side) {
        self.arrived[place.slot]
            .push(Contribution::Rows(Rows::Side { side: Box::new(side), first_row: 0 }));
    }

    /// What has arrived at `place`, of shape `shape`, goes to the rows from `first_row` on of `to`.
    pub(crate) fn hand_on(
        &mut self,
        backend: &CudaBackend,
        place: Place,
        shape: Shape,
        to: Place,
        first_row: usize,
    ) -> Result<()> {
        let is_side = |part: &Contribution| matches!(part, Contribution::Rows(Rows::Side { .. }));
        if self.arrived[place.slot].iter().any(is_side) && !self.has_products(place) {
            // Not yet summed up: all of them are added at once.
            for part in std::mem::take(&mut self.arrived[place.slot]) {
                if let Contribution::Rows(rows) = part {
                    self.arrived[to.slot].push(Contribution::Rows(rows.later(first_row)));
                }
            }
        } else if let Some(sum) = self.take(backend, place, shape)? {
            self.add_rows(to, sum, first_row);
        }
        Ok(())
    }

    /// What has arrived at `place`, of shape `shape`, with the first row of each: at most `most`
    /// matrices below each other, if that is what they are; else their sum.
    pub(crate) fn take_rows(
        &mut self,
        backend: &CudaBackend,
        place: Place,
        shape: Shape,
        most: usize,
    ) -> Result<Option<Vec<(CudaTensor, usize)>>> {
        let rows = rows_below_each_other(&self.arrived[place.slot], shape);
        if let Some(rows) = rows.filter(|rows| rows.len() <= most) {
            self.arrived[place.slot].clear();
            return Ok(Some(rows));
        }
        Ok(self.take(backend, place, shape)?.map(|sum| vec![(sum, 0)]))
    }

    /// Adds a product that need not be computed yet.
    pub(crate) fn add_product(&mut self, place: Place, product: Product) {
        self.arrived[place.slot].push(Contribution::Product(Box::new(product)));
    }

    /// Takes out the gradient of a bias at `place`, if all of it are sums that the last product for
    /// the weights at `weights` computes: whoever comes after that product may add to them.
    pub(crate) fn take_sums(&mut self, weights: Place, place: Place) -> Option<CudaTensor> {
        let [Contribution::Rows(Rows::Matrix { tensor, first_row: 0 })] =
            &self.arrived[place.slot][..]
        else {
            return None;
        };
        let is_theirs = match self.arrived[weights.slot].last()? {
            Contribution::Product(product) => product.has_sums(tensor),
            Contribution::Rows(_) => false,
        };
        let sums = is_theirs.then(|| tensor.clone())?;
        self.arrived[place.slot].clear();
        Some(sums)
    }

    /// The gradient of the matrix at `place`, of shape `shape`; `None` if nothing depends on it.
    pub(crate) fn take(
        &mut self,
        backend: &CudaBackend,
        place: Place,
        shape: Shape,
    ) -> Result<Option<CudaTensor>> {
        self.sum_up(backend, place, shape, None, add_rows)
    }

    /// The same times `factor`, for products to take as an operand.
    pub(crate) fn take_operand(
        &mut self,
        backend: &CudaBackend,
        place: Place,
        shape: Shape,
        factor: Option<&CudaTensor>,
    ) -> Result<Option<CudaTensor>> {
        self.sum_up(backend, place, shape, factor, add_operands)
    }

    fn sum_up(
        &mut self,
        backend: &CudaBackend,
        place: Place,
        shape: Shape,
        factor: Option<&CudaTensor>,
        add: fn(&CudaBackend, Shape, Vec<Rows>, Option<&CudaTensor>) -> Result<CudaTensor>,
    ) -> Result<Option<CudaTensor>> {
        let arrived = std::mem::take(&mut self.arrived[place.slot]);
        let (mut parts, mut products) = (Vec::new(), Vec::new());
        for contribution in arrived {
            match contribution {
                Contribution::Rows(rows) => parts.push(rows),
                Contribution::Product(product) => products.push(*product),
            }
        }
        match (parts.is_empty(), products.is_empty()) {
            (true, _) => Product::sum_up(backend, &products, None, factor),
            (false, true) => add(backend, shape, parts, factor).map(Some),
            (false, false) => {
                let sum = add_rows(backend, shape, parts, None)?;
                Product::sum_up(backend, &products, Some(sum), factor)
            }
        }
    }
}

/// The matrices and their first rows, in order, if none of `shape`'s rows is missing or there twice.
fn rows_below_each_other(parts: &[Contribution], shape: Shape) -> Option<Vec<(CudaTensor, usize)>> {
    let rows = parts.iter().map(|part| match part {
        Contribution::Rows(Rows::Matrix { tensor, first_row }) => {
            Some((tensor.clone(), *first_row))
        }
        _ => None,
    });
    let mut rows = rows.collect::<Option<Vec<_>>>()?;
    rows.sort_by_key(|(_, first_row)| *first_row);
    let end = rows.iter().try_fold(0, |end, (tensor, first_row)| {
        (*first_row == end).then_some(end + tensor.shape[0])
    });
    (end == Some(shape[0])).then_some(rows)
}

/// The sum of parts, times `factor` if it is given, by a kernel that stores it as operands too.
fn add_operands(
    backend: &CudaBackend,
    shape: Shape,
    rows: Vec<Rows>,
    factor: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    let is_there = match &rows[..] {
        [Rows::Matrix { tensor, .. }] => factor.is_none() && tensor.shape == shape,
        _ => false,
    };
    // Smaller ones are better off as part of a chain.
    let is_large = shape[0] * shape[1] > MOST_CHAINED;
    if !is_there && is_large && Product::can_sum(backend) {
        return add_sides(backend, shape, rows, factor);
    }
    add_rows(backend, shape, rows, factor)
}

/// The sum of parts, times `factor` if it is given.
fn add_rows(
    backend: &CudaBackend,
    shape: Shape,
    rows: Vec<Rows>,
    factor: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    if rows.iter().any(|part| matches!(part, Rows::Side { .. })) {
        return add_sides(backend, shape, rows, factor);
    }
    let parts = rows.into_iter().filter_map(|part| match part {
        Rows::Matrix { tensor, first_row } => Some(Part { start: first_row * shape[1], tensor }),
        Rows::Side { .. } => None,
    });
    add_parts(backend, shape, parts.collect(), factor)
}

impl CudaBackend {
    /// Where `x` is on the current tape, if it is tracked.
    pub(crate) fn place(&self, x: &CudaTensor) -> Option<Place> {
        let scope = self.scope().borrow();
        let current = scope.as_ref()?.number;
        x.place.filter(|place| place.scope == current)
    }

    /// The place of a wanted cell.
    pub(crate) fn wanted_place(&self, cell: &CudaCell) -> Option<Place> {
        let scope = self.scope().borrow();
        let wanted = &scope.as_ref()?.wanted;
        let number = cell.buffer().number();
        wanted.iter().find(|(wanted, _)| *wanted == number).map(|(_, place)| *place)
    }

    /// Puts `result` on the tape if an input is tracked. `backward(backend, slots, dy)` is called
    /// with the gradient of the result, if one arrives.
    pub(crate) fn record<F>(
        &self,
        result: CudaTensor,
        inputs: &[Option<Place>],
        backward: impl FnOnce() -> F,
    ) -> CudaTensor
    where
        F: FnOnce(&CudaBackend, &mut Slots, CudaTensor) -> Result<()> + 'static,
    {
        let shape = result.shape;
        self.record_place(result, inputs, |place| {
            let backward = backward();
            move |backend: &CudaBackend, slots: &mut Slots| match slots
                .take(backend, place, shape)?
            {
                Some(gradient) => backward(backend, slots, gradient),
                None => Ok(()),
            }
        })
    }

    /// The same for operations that take the gradient of their result out themselves.
    pub(crate) fn record_place<F>(
        &self,
        mut result: CudaTensor,
        inputs: &[Option<Place>],
        backward: impl FnOnce(Place) -> F,
    ) -> CudaTensor
    where
        F: FnOnce(&CudaBackend, &mut Slots) -> Result<()> + 'static,
    {
        let mut scope = self.scope().borrow_mut();
        if let Some(scope) = scope.as_mut().filter(|_| inputs.iter().any(Option::is_some)) {
            let place = scope.new_place();
            result.place = Some(place);
            scope.steps.push(Box::new(backward(place)));
        }
        result
    }

    /// Runs `loss` on a tape of its own, then the tape backwards.
    pub(crate) fn differentiate(
        &self,
        wanted: &[CudaCell],
        loss: impl FnOnce() -> Result<CudaTensor>,
    ) -> Result<Vec<CudaTensor>> {
        let places = self.open_scope(wanted)?;
        let open = OpenScope(self);
        let loss = loss()?;
        let scope = open.0.scope().borrow_mut().take().ok_or(Error::NestedGradients)?;
        let arrived = (0..scope.slots).map(|_| Vec::new()).collect();
        let mut slots = Slots { arrived, wanted: wanted.len() };
        if let Some(place) = loss.place.filter(|place| place.scope == scope.number) {
            slots.add(place, self.constant([1, 1], 1.0)?);
        }
        for step in scope.steps.into_iter().rev() {
            step(self, &mut slots)?;
        }
        // Products first: some compute what others wait for.
        let mut results = vec![None; wanted.len()];
        let (first, then) = (0..wanted.len())
            .partition::<Vec<_>, _>(|&index: &usize| slots.has_products(places[index]));
        for index in first.into_iter().chain(then) {
            let shape = wanted[index].shape;
            results[index] = Some(match slots.take(self, places[index], shape)? {
                Some(gradient) => self.stop(&gradient),
                None => fill(self, shape, 0.0)?,
            });
        }
        Ok(results.into_iter().flatten().collect())
    }

    fn open_scope(&self, wanted: &[CudaCell]) -> Result<Vec<Place>> {
        let mut scope = self.scope().borrow_mut();
        if scope.is_some() {
            return Err(Error::NestedGradients);
        }
        // No two scopes of any two backends have the same number.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut opened = Scope { number, steps: Vec::new(), slots: 0, wanted: Vec::new() };
        let places = wanted.iter().map(|_| opened.new_place()).collect::<Vec<_>>();
        let numbers = wanted.iter().map(|cell| cell.buffer().number());
        opened.wanted = numbers.zip(places.iter().copied()).collect();
        *scope = Some(opened);
        Ok(places)
    }
}

/// Closes the scope however the loss ends.
struct OpenScope<'a>(&'a CudaBackend);

impl Drop for OpenScope<'_> {
    fn drop(&mut self) {
        self.0.scope().borrow_mut().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::testing::tensor;

    #[test]
    fn rows_are_below_each_other_if_each_is_there_once() {
        let found = |parts: &[(usize, usize)]| {
            let parts = parts.iter().map(|&(first_row, rows)| {
                let tensor = tensor([rows, 3]);
                Contribution::Rows(Rows::Matrix { tensor, first_row })
            });
            let rows = rows_below_each_other(&parts.collect::<Vec<_>>(), [6, 3])?;
            Some(rows.iter().map(|(_, first_row)| *first_row).collect::<Vec<_>>())
        };
        assert_eq!(found(&[(0, 6)]), Some(vec![0]));
        assert_eq!(found(&[(4, 2), (0, 4)]), Some(vec![0, 4]));
        assert_eq!(found(&[(0, 4)]), None);
        assert_eq!(found(&[(1, 5)]), None);
        assert_eq!(found(&[(0, 3), (2, 4)]), None);
        assert_eq!(found(&[(0, 6), (0, 6)]), None);
        assert_eq!(found(&[]), None);
    }
}
