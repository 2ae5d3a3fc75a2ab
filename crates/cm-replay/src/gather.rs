//! Copies rows out of matrices at memory speed.

use std::ops::Range;

use crate::Matrix;
use crate::batch::BatchMut;

/// The matrices of a batch as plain slices, with their widths.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    numbers: &'a [f32],
    columns: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn of(matrix: &'a Matrix) -> Self {
        Self { numbers: matrix.numbers(), columns: matrix.columns() }
    }

    /// Asks the processor to bring rows `from..to` into its cache while it does something else.
    #[inline]
    fn prefetch(&self, from: usize, to: usize) {
        let rows = &self.numbers[from * self.columns..to * self.columns];
        for line in rows.chunks(LINE) {
            prefetch(&line[0]);
        }
        // Rows need not start at the start of a cache line.
        if let Some(last) = rows.last() {
            prefetch(last);
        }
    }

    /// Copies row `row` to row `at` of `target`, or does nothing if `target` is empty.
    #[inline]
    fn copy(&self, row: usize, target: &mut [f32], at: usize) {
        if !target.is_empty() {
            let source = &self.numbers[row * self.columns..][..self.columns];
            target[at * self.columns..][..self.columns].copy_from_slice(source);
        }
    }
}

/// Brings what `rows` of the batch will need into the cache.
#[inline]
pub(crate) fn prefetch_rows(
    observations: Rows,
    actions: Rows,
    batch: &BatchMut,
    rows: Range<usize>,
) {
    for (&step, &goal) in batch.steps[rows.clone()].iter().zip(&batch.goal_steps[rows]) {
        observations.prefetch(step, step + 2);
        observations.prefetch(goal, goal + 1);
        actions.prefetch(step, step + 1);
        actions.prefetch(goal, goal + 1);
    }
}

/// Copies what `batch.steps` and `batch.goal_steps` name in `rows`.
pub(crate) fn copy_rows(
    observations: Rows,
    actions: Rows,
    batch: &mut BatchMut,
    rows: Range<usize>,
) {
    for row in rows {
        let (step, goal) = (batch.steps[row], batch.goal_steps[row]);
        observations.copy(step, batch.observations, row);
        observations.copy(step + 1, batch.next_observations, row);
        actions.copy(step, batch.actions, row);
        observations.copy(goal, batch.goals, row);
        actions.copy(goal, batch.goal_actions, row);
    }
}

/// Numbers in a cache line.
const LINE: usize = 16;

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
