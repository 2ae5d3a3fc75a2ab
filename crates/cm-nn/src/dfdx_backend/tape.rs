//! dfdx's tape under matrices of our own.
//!
//! dfdx 0.13 keeps a tensor's buffer private, and what its public interface gives out are copies.
//! The values therefore live beside it, and an empty dfdx tensor stands for each tracked matrix on
//! dfdx's tape: it is the key of the matrix's gradient in dfdx's `Gradients`, whose buffer, empty
//! at first, is filled by whoever contributes first. So no gradient is ever cleared, copied or
//! allocated twice.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use dfdx::prelude::{
    Backward, Cpu, CpuError, Gradients, OwnedTape, PutTape, SplitTape, Tape, Tensor, ZerosTensor,
};

use super::memory::Pool;
use super::{DfdxBackend, Matrix};
use crate::{Error, Result, Shape};

/// Stands for a matrix on the tape.
type Key = Tensor<(usize,), f32, Cpu>;

/// A matrix's place on the tape of one call of `gradients`.
#[derive(Clone)]
pub(super) struct Place {
    scope: u64,
    key: Key,
}

/// One call of `gradients`.
pub(super) struct Scope {
    number: u64,
    tape: OwnedTape<f32, Cpu>,
    /// Address and place of each wanted cell.
    wanted: Vec<(usize, Place)>,
}

/// The gradients of the matrices on the tape, while it is run backwards.
pub(super) struct Slots<'a> {
    gradients: &'a mut Gradients<f32, Cpu>,
    pool: &'a Pool,
}

impl Slots<'_> {
    /// Memory for the operation's own use.
    pub(super) fn pool(&self) -> &Pool {
        self.pool
    }

    /// Adds `gradient` to that of the matrix at `place`, taking the buffer over if it is the first.
    pub(super) fn add(&mut self, place: &Place, gradient: Vec<f32>) -> Result<(), CpuError> {
        let slot = self.gradients.get_or_alloc_mut(&place.key)?;
        if slot.is_empty() {
            **slot = gradient;
        } else {
            super::elementwise::add_assign(slot, &gradient);
            self.pool.give(gradient);
        }
        Ok(())
    }

    /// Lets `write` put its contribution to the gradient (of `length` numbers) of the matrix at
    /// `place` in place: `write(buffer, first)` overwrites the buffer if `first`, else adds to it.
    pub(super) fn write(
        &mut self,
        place: &Place,
        length: usize,
        write: impl FnOnce(&mut [f32], bool),
    ) -> Result<(), CpuError> {
        let slot = self.gradients.get_or_alloc_mut(&place.key)?;
        let first = slot.is_empty();
        if first {
            **slot = self.pool.take(length);
        }
        write(slot, first);
        Ok(())
    }

    /// Takes what has arrived so far of the gradient (of `length` numbers) of the matrix at `place`
    /// out, for an operation that adds to it and gives it back by [`add`](Self::add); zeros if
    /// nothing has, or there is no place.
    pub(super) fn take_or_zeros(
        &mut self,
        place: &Option<Place>,
        length: usize,
    ) -> Result<Vec<f32>, CpuError> {
        let arrived = place.as_ref().map(|place| self.take(place)).transpose()?.flatten();
        Ok(arrived.unwrap_or_else(|| self.pool.zeros(length)))
    }

    /// Takes the gradient of the matrix at `place` out; `None` if nothing depends on it.
    fn take(&mut self, place: &Place) -> Result<Option<Vec<f32>>, CpuError> {
        let slot = self.gradients.get_or_alloc_mut(&place.key)?;
        let gradient: Vec<f32> = std::mem::take(slot);
        Ok((!gradient.is_empty()).then_some(gradient))
    }
}

impl DfdxBackend {
    /// Where `x` is on the current tape, if it is tracked.
    pub(super) fn place(&self, x: &Matrix) -> Option<Place> {
        let scope = self.inner.scope.borrow();
        let current = scope.as_ref()?.number;
        x.place.clone().filter(|place| place.scope == current)
    }

    /// The place of a wanted cell.
    pub(super) fn wanted_place(&self, address: usize) -> Option<Place> {
        let scope = self.inner.scope.borrow();
        let wanted = &scope.as_ref()?.wanted;
        wanted.iter().find(|(cell, _)| *cell == address).map(|(_, place)| place.clone())
    }

    /// A constant.
    pub(super) fn constant(&self, shape: Shape, values: Vec<f32>) -> Matrix {
        debug_assert_eq!(values.len(), shape[0] * shape[1]);
        Matrix { shape, values: self.share(values), place: None }
    }

    /// The result of an operation with these inputs. `backward(slots, dy)` is called with the
    /// gradient of the result, if one arrives, and `backward` is only made (and its captures only
    /// kept) if some input is tracked.
    pub(super) fn record<F>(
        &self,
        shape: Shape,
        values: Vec<f32>,
        inputs: &[&Option<Place>],
        backward: impl FnOnce(&Matrix) -> F,
    ) -> Result<Matrix>
    where
        F: FnOnce(&mut Slots<'_>, Vec<f32>) -> Result<(), CpuError> + 'static,
    {
        let mut result = self.constant(shape, values);
        let mut scope = self.inner.scope.borrow_mut();
        let Some(scope) = scope.as_mut().filter(|_| inputs.iter().any(|input| input.is_some()))
        else {
            return Ok(result);
        };
        let place = self.new_place(scope.number)?;
        let backward = backward(&result);
        result.place = Some(place.clone());
        let pool = self.inner.pool.clone();
        scope.tape.add_backward_op(move |gradients| {
            let mut slots = Slots { gradients, pool: &pool };
            match slots.take(&place)? {
                Some(gradient) => backward(&mut slots, gradient),
                None => Ok(()),
            }
        });
        Ok(result)
    }

    /// Runs `loss` on a tape of its own, then the tape backwards.
    pub(super) fn differentiate(
        &self,
        wanted: &[super::Cell],
        loss: impl FnOnce() -> Result<Matrix>,
    ) -> Result<Vec<Matrix>> {
        let places = self.open_scope(wanted)?;
        let open = OpenScope(self);
        let loss = loss()?;
        let Some(scope) = open.0.inner.scope.borrow_mut().take() else {
            return Err(Error::NestedGradients);
        };
        let mut gradients = self.run_backwards(scope, &loss)?;
        let mut slots = Slots { gradients: &mut gradients, pool: &self.inner.pool };
        let results = wanted.iter().zip(&places).map(|(cell, place)| {
            let [rows, columns] = cell.shape();
            let gradient = slots.take(place).map_err(failed)?;
            let gradient = gradient.unwrap_or_else(|| self.inner.pool.zeros(rows * columns));
            Ok(self.constant([rows, columns], gradient))
        });
        results.collect()
    }

    fn open_scope(&self, wanted: &[super::Cell]) -> Result<Vec<Place>> {
        let mut scope = self.inner.scope.borrow_mut();
        if scope.is_some() {
            return Err(Error::NestedGradients);
        }
        // No two scopes of any two backends have the same number.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let places = wanted.iter().map(|_| self.new_place(number)).collect::<Result<Vec<_>>>()?;
        let wanted = wanted.iter().map(super::Cell::address).zip(places.iter().cloned()).collect();
        *scope = Some(Scope { number, tape: OwnedTape::default(), wanted });
        Ok(places)
    }

    fn run_backwards(&self, mut scope: Scope, loss: &Matrix) -> Result<Gradients<f32, Cpu>> {
        if let Some(place) = loss.place.clone().filter(|place| place.scope == scope.number) {
            scope.tape.add_backward_op(move |gradients| {
                **gradients.get_or_alloc_mut(&place.key)? = vec![1.0];
                Ok(())
            });
        }
        // dfdx runs a tape through a scalar that carries it.
        let root: Tensor<(), f32, Cpu> = self.inner.device.try_zeros().map_err(failed)?;
        root.put_tape(scope.tape).try_backward().map_err(failed)
    }

    fn new_place(&self, scope: u64) -> Result<Place> {
        let key: Key = self.inner.device.try_zeros_like(&(0_usize,)).map_err(failed)?;
        Ok(Place { scope, key: key.split_tape().0 })
    }

    fn share(&self, values: Vec<f32>) -> Rc<super::memory::Buffer> {
        Rc::new(super::memory::Buffer::new(values, &self.inner.pool))
    }
}

/// Closes the scope however the loss ends.
struct OpenScope<'a>(&'a DfdxBackend);

impl Drop for OpenScope<'_> {
    fn drop(&mut self) {
        self.0.inner.scope.take();
    }
}

fn failed(error: CpuError) -> Error {
    Error::Backend(Box::new(error))
}
