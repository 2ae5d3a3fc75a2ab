//! Buffers that are used again.
//!
//! Every step allocates the same sizes. Handing freed buffers to the next operation that asks for
//! that size avoids both clearing memory that is about to be overwritten and faulting in fresh
//! pages.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

/// Shorter buffers are found by their length alone.
const SHORT: usize = 1024;
/// So many of each length below that are kept.
const MOST_OF_A_LENGTH: usize = 64;
/// When more numbers than these are kept, all go back to the allocator: most are then of lengths no
/// longer in use.
const MOST_KEPT: usize = 1 << 26;

/// Free buffers by length.
#[derive(Default)]
pub(super) struct Pool {
    short: RefCell<Vec<Vec<Vec<f32>>>>,
    long: RefCell<HashMap<usize, Vec<Vec<f32>>>>,
    /// Numbers in all long ones.
    kept: Cell<usize>,
}

impl Pool {
    /// A buffer with arbitrary values.
    pub(super) fn take(&self, length: usize) -> Vec<f32> {
        let kept = match length < SHORT {
            true => self.short.borrow_mut().get_mut(length).and_then(Vec::pop),
            false => self.long.borrow_mut().get_mut(&length).and_then(Vec::pop),
        };
        let Some(buffer) = kept else { return vec![0.0; length] };
        if length >= SHORT {
            self.kept.set(self.kept.get() - length);
        }
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
        let length = buffer.len();
        if length < SHORT {
            let mut short = self.short.borrow_mut();
            if short.is_empty() {
                short.resize_with(SHORT, Vec::new);
            }
            if short[length].len() < MOST_OF_A_LENGTH {
                short[length].push(buffer);
            }
            return;
        }
        let mut long = self.long.borrow_mut();
        let kept = self.kept.get() + length;
        if kept > MOST_KEPT {
            long.clear();
            self.kept.set(0);
        } else {
            long.entry(length).or_default().push(buffer);
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
        for length in [1, SHORT - 1, SHORT, 2 * SHORT] {
            let pool = Rc::new(Pool::default());
            let buffer = Buffer::new(vec![7.0; length], &pool);
            let place = buffer.as_ptr();
            drop(buffer);
            let again = pool.take(length);
            assert_eq!((again.as_ptr(), again[0]), (place, 7.0));
            let other = pool.take(length);
            assert_ne!(other.as_ptr(), place);
            pool.give(again);
            assert_eq!(pool.zeros(length), vec![0.0; length]);
        }
    }

    #[test]
    fn few_short_ones_are_kept() {
        let pool = Pool::default();
        for _ in 0..2 * MOST_OF_A_LENGTH {
            pool.give(vec![0.0; 3]);
        }
        pool.give(Vec::new());
        let short = pool.short.borrow();
        assert_eq!((short[3].len(), pool.kept.get()), (MOST_OF_A_LENGTH, 0));
    }

    #[test]
    fn lengths_no_longer_in_use_do_not_pile_up() {
        let pool = Pool::default();
        for length in (0..100).map(|extra| (1 << 20) + extra) {
            pool.give(vec![0.0; length]);
            let total = pool.long.borrow().values().flatten().map(Vec::len).sum::<usize>();
            assert!(total == pool.kept.get() && total <= MOST_KEPT);
        }
    }
}
