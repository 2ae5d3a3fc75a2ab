//! Buffers that are used again.
//!
//! Every step allocates the same sizes. Handing freed buffers to the next operation that asks for
//! that size avoids both clearing memory that is about to be overwritten and faulting in fresh
//! pages.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

/// Shorter buffers go back to the allocator, which is fast for them.
const SHORTEST_KEPT: usize = 1024;
/// When more numbers than these are kept, all go back to the allocator: most are then of lengths no
/// longer in use.
const MOST_KEPT: usize = 1 << 26;

/// Free buffers by length.
#[derive(Default)]
pub(super) struct Pool {
    free: RefCell<HashMap<usize, Vec<Vec<f32>>>>,
    /// Numbers in all of them.
    kept: Cell<usize>,
}

impl Pool {
    /// A buffer with arbitrary values.
    pub(super) fn take(&self, length: usize) -> Vec<f32> {
        // Nothing shorter is ever kept.
        let kept = match length < SHORTEST_KEPT {
            true => None,
            false => self.free.borrow_mut().get_mut(&length).and_then(Vec::pop),
        };
        let Some(buffer) = kept else { return vec![0.0; length] };
        self.kept.set(self.kept.get() - length);
        buffer
    }

    /// A buffer of zeros.
    pub(super) fn zeros(&self, length: usize) -> Vec<f32> {
        let mut buffer = self.take(length);
        buffer.fill(0.0);
        buffer
    }

    /// A copy.
    pub(super) fn copy(&self, values: &[f32]) -> Vec<f32> {
        let mut buffer = self.take(values.len());
        buffer.copy_from_slice(values);
        buffer
    }

    /// Keeps a buffer that is no longer needed.
    pub(super) fn give(&self, buffer: Vec<f32>) {
        if buffer.len() < SHORTEST_KEPT {
            return;
        }
        let mut free = self.free.borrow_mut();
        let kept = self.kept.get() + buffer.len();
        if kept > MOST_KEPT {
            free.clear();
            self.kept.set(0);
        } else {
            free.entry(buffer.len()).or_default().push(buffer);
            self.kept.set(kept);
        }
    }
}

/// A buffer that returns to its pool when dropped.
pub(super) struct Buffer {
    values: Vec<f32>,
    pool: Rc<Pool>,
}

impl Buffer {
    pub(super) fn new(values: Vec<f32>, pool: &Rc<Pool>) -> Self {
        Self { values, pool: pool.clone() }
    }

    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::new(self.pool.copy(&self.values), &self.pool)
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_return_and_are_used_again() {
        let pool = Rc::new(Pool::default());
        let buffer = Buffer::new(vec![7.0; 2000], &pool);
        let place = buffer.as_ptr();
        drop(buffer);
        let again = pool.take(2000);
        assert_eq!((again.as_ptr(), again[0]), (place, 7.0));
        let other = pool.take(2000);
        assert_ne!(other.as_ptr(), place);
        pool.give(again);
        assert_eq!(pool.zeros(2000), vec![0.0; 2000]);
    }

    #[test]
    fn lengths_no_longer_in_use_do_not_pile_up() {
        let pool = Pool::default();
        for length in (0..100).map(|extra| (1 << 20) + extra) {
            pool.give(vec![0.0; length]);
            let total = pool.free.borrow().values().flatten().map(Vec::len).sum::<usize>();
            assert!(total == pool.kept.get() && total <= MOST_KEPT);
        }
    }
}
