//! Copies rows out of matrices at memory speed.

use crate::Matrix;
use crate::batch::BatchMut;
use crate::matrix::LINE;

/// A matrix as a plain slice.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    numbers: &'a [f32],
    columns: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn of(matrix: &'a Matrix) -> Self {
        let (numbers, stride) = matrix.padded();
        Self { numbers, columns: matrix.columns(), stride }
    }

    /// Asks the processor to bring `count` rows from row `first` on into its cache while it does something else.
    #[inline]
    fn prefetch(&self, first: usize, count: usize) {
        let rows = &self.numbers[first * self.stride..][..count * self.stride];
        for line in rows.chunks(LINE) {
            prefetch(&line[0]);
        }
        // Rows that are no whole number of lines may reach into one more.
        if !self.stride.is_multiple_of(LINE)
            && let Some(last) = rows.last()
        {
            prefetch(last);
        }
    }

    /// Copies row `row` to row `at` of `target`, or does nothing if `target` is empty.
    #[inline]
    fn copy(&self, row: usize, target: &mut [f32], at: usize) {
        if !target.is_empty() {
            let source = &self.numbers[row * self.stride..][..self.columns];
            target[at * self.columns..][..self.columns].copy_from_slice(source);
        }
    }
}

/// Brings what row `row` of the batch will need into the cache.
#[inline]
pub(crate) fn prefetch_row(observations: Rows, actions: Rows, batch: &BatchMut, row: usize) {
    let (step, goal) = (batch.steps[row], batch.goal_steps[row]);
    observations.prefetch(step, 2);
    observations.prefetch(goal, 1);
    actions.prefetch(step, 1);
    actions.prefetch(goal, 1);
}

/// Copies the rows that `batch.steps[row]` and `batch.goal_steps[row]` name.
#[inline]
pub(crate) fn copy_row(observations: Rows, actions: Rows, batch: &mut BatchMut, row: usize) {
    let (step, goal) = (batch.steps[row], batch.goal_steps[row]);
    observations.copy(step, batch.observations, row);
    observations.copy(step + 1, batch.next_observations, row);
    actions.copy(step, batch.actions, row);
    observations.copy(goal, batch.goals, row);
    actions.copy(goal, batch.goal_actions, row);
}

#[inline(always)]
fn prefetch(number: &f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it reads nothing and cannot fault. The address is that of a live reference anyway.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(number).cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = number;
}
