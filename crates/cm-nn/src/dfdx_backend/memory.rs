//! Buffers that are used again.
//!
//! Every step allocates the same sizes. Handing freed buffers to the next operation that asks for that size avoids both clearing memory that
//! is about to be overwritten and faulting in fresh pages.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

/// Shorter buffers go back to the allocator, which is fast for them.
const SHORTEST_KEPT: usize = 1024;
/// Buffers of one length beyond these go back to the allocator.
const KEPT_PER_LENGTH: usize = 64;

/// Free buffers by length.
#[derive(Default)]
pub(super) struct Pool {
    free: RefCell<HashMap<usize, Vec<Vec<f32>>>>,
}

impl Pool {
    /// A buffer with arbitrary values.
    pub(super) fn take(&self, length: usize) -> Vec<f32> {
        let kept = self.free.borrow_mut().get_mut(&length).and_then(Vec::pop);
        kept.unwrap_or_else(|| vec![0.0; length])
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
        let kept = free.entry(buffer.len()).or_default();
        if kept.len() < KEPT_PER_LENGTH {
            kept.push(buffer);
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
