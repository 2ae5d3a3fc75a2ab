//! Memory of matrices: taken at once when running eagerly, planned later when recording.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::driver::{Address, Context};
use crate::{Error, Result};

/// Every address is a multiple of this many bytes.
pub(crate) const ALIGNMENT: usize = 256;

/// Numbers of all replicas: `length` each, `stride` apart (0 if they share one copy).
pub(crate) struct Buffer {
    number: u64,
    pub(crate) length: usize,
    pub(crate) stride: usize,
    /// Copies: as many as replicas, or one.
    copies: usize,
    home: OnceCell<Home>,
}

/// Where a buffer's memory is from.
enum Home {
    /// A piece of its own, given back to the pool.
    Pool { pool: Rc<Pool>, address: Address, bytes: usize },
    /// Somebody else's.
    Borrowed { address: Address },
    /// A part of a recorded step's memory.
    Arena { arena: Rc<Arena>, offset: usize },
}

impl Buffer {
    /// A buffer without memory yet.
    pub(crate) fn planned(length: usize, copies: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // So that every replica begins at an aligned address.
        let stride = if copies == 1 { 0 } else { length.next_multiple_of(ALIGNMENT / 4) };
        Self { number, length, stride, copies, home: OnceCell::new() }
    }

    /// A buffer with memory from the pool.
    pub(crate) fn taken(pool: &Rc<Pool>, length: usize, copies: usize) -> Result<Self> {
        let buffer = Self::planned(length, copies);
        let bytes = size_class(buffer.bytes());
        let address = pool.take(bytes)?;
        let _ = buffer.home.set(Home::Pool { pool: pool.clone(), address, bytes });
        Ok(buffer)
    }

    /// A buffer in memory that others keep.
    pub(crate) fn borrowed(length: usize, address: Address) -> Self {
        let buffer = Self::planned(length, 1);
        let _ = buffer.home.set(Home::Borrowed { address });
        buffer
    }

    /// Tells buffers apart.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of all copies.
    pub(crate) fn bytes(&self) -> usize {
        let last = self.length * 4;
        (self.copies - 1) * self.stride * 4 + last
    }

    /// Gives a planned buffer its place.
    pub(crate) fn place(&self, arena: &Rc<Arena>, offset: usize) {
        let _ = self.home.set(Home::Arena { arena: arena.clone(), offset });
    }

    /// Whether it has memory.
    pub(crate) fn is_placed(&self) -> bool {
        self.home.get().is_some()
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> Result<Address> {
        match self.home.get() {
            Some(Home::Pool { address, .. } | Home::Borrowed { address }) => Ok(*address),
            Some(Home::Arena { arena, offset }) => Ok(arena.address + *offset as Address),
            None => Err(Error::NeverRun),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(Home::Pool { pool, address, bytes }) = self.home.take() {
            pool.give(address, bytes);
        }
    }
}

/// The memory of one recorded step.
pub(crate) struct Arena {
    pool: Rc<Pool>,
    address: Address,
    bytes: usize,
}

impl Arena {
    pub(crate) fn new(pool: &Rc<Pool>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(ALIGNMENT);
        Ok(Self { pool: pool.clone(), address: pool.take(bytes)?, bytes })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.pool.give(self.address, self.bytes);
    }
}

/// Pieces of memory that were used and can be again.
///
/// Everything runs in the order of one stream, so a piece may be handed out as soon as it was given
/// back, even if kernels that use it have not run yet.
pub(crate) struct Pool {
    context: Rc<Context>,
    free: RefCell<BTreeMap<usize, Vec<Address>>>,
    /// Bytes taken from the driver.
    held: Cell<usize>,
}

impl Pool {
    pub(crate) fn new(context: &Rc<Context>) -> Self {
        let (free, held) = (RefCell::default(), Cell::new(0));
        Self { context: context.clone(), free, held }
    }

    fn take(&self, bytes: usize) -> Result<Address> {
        if let Some(address) = self.free.borrow_mut().get_mut(&bytes).and_then(Vec::pop) {
            return Ok(address);
        }
        let mut found = self.context.allocate(bytes)?;
        if found.is_none() {
            self.release()?;
            found = self.context.allocate(bytes)?;
        }
        let Some(address) = found else {
            let (free, total) = self.context.memory()?;
            let mebibytes = |bytes: usize| bytes.div_ceil(1 << 20);
            let [wanted, free, total] = [bytes, free, total].map(mebibytes);
            return Err(Error::OutOfMemory { wanted, free, total });
        };
        self.held.set(self.held.get() + bytes);
        Ok(address)
    }

    fn give(&self, address: Address, bytes: usize) {
        self.free.borrow_mut().entry(bytes).or_default().push(address);
    }

    /// Gives everything unused back to the driver.
    fn release(&self) -> Result<()> {
        self.context.wait()?;
        for (bytes, addresses) in std::mem::take(&mut *self.free.borrow_mut()) {
            self.held.set(self.held.get() - bytes * addresses.len());
            addresses.into_iter().for_each(|address| self.context.free(address));
        }
        Ok(())
    }

    /// Bytes taken from the driver, used or not.
    pub(crate) fn held(&self) -> usize {
        self.held.get()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.release();
    }
}

/// Sizes are rounded up to at most an eighth more, so that pieces fit again.
fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 16).max(ALIGNMENT);
    bytes.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_begin_at_aligned_places() {
        let buffer = Buffer::planned(65, 3);
        assert_eq!((buffer.stride, buffer.bytes()), (128, (2 * 128 + 65) * 4));
        let shared = Buffer::planned(65, 1);
        assert_eq!((shared.stride, shared.bytes()), (0, 65 * 4));
        assert_ne!(buffer.number(), shared.number());
        assert!(matches!(buffer.address(), Err(Error::NeverRun)));
    }

    #[test]
    fn size_classes_waste_little_and_repeat() {
        for bytes in [1, 255, 256, 257, 4097, 100_000, 1 << 30] {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(ALIGNMENT));
            assert!(class <= bytes + (bytes / 8).max(ALIGNMENT), "{bytes} {class}");
            assert_eq!(size_class(class), class);
        }
    }
}
