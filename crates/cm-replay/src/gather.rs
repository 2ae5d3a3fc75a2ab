//! Copies rows out of matrices at memory speed.

use std::ops::Range;

use crate::batch::BatchMut;
use crate::matrix::LINE;
use crate::{Dataset, Matrix};

/// Copies what the rows `now` of the batch name by their steps and goals' steps, and meanwhile
/// calls what the rows `next` name into the cache.
#[inline(always)]
pub(crate) fn gather(data: &Dataset, batch: &mut BatchMut, now: Range<usize>, next: Range<usize>) {
    let (observations, actions) = (Rows::of(data.observations()), Rows::of(data.actions()));
    let (steps, next_steps) = (&batch.steps[now.clone()], &batch.steps[next.clone()]);
    let (goals, next_goals) = (&batch.goal_steps[now.clone()], &batch.goal_steps[next.clone()]);
    let pair = [&mut *batch.observations, &mut *batch.next_observations];
    if pair.iter().all(|target| !target.is_empty()) {
        observations.copy(steps, next_steps, pair, now.start);
    } else {
        let [first, second] = pair;
        observations.copy(steps, next_steps, [first], now.start);
        observations.without_first().copy(steps, next_steps, [second], now.start);
    }
    actions.copy(steps, next_steps, [&mut *batch.actions], now.start);
    observations.copy(goals, next_goals, [&mut *batch.goals], now.start);
    actions.copy(goals, next_goals, [&mut *batch.goal_actions], now.start);
    for further in [&mut batch.actor, &mut batch.low, &mut batch.high] {
        if let Some(steps) = further.steps.get(now.clone()) {
            let next = further.steps.get(next.clone()).unwrap_or_default();
            observations.copy(steps, next, [&mut *further.observations], now.start);
        }
    }
}

/// A matrix as a plain slice.
#[derive(Clone, Copy)]
struct Rows<'a> {
    numbers: &'a [f32],
    columns: usize,
    stride: usize,
}

impl<'a> Rows<'a> {
    fn of(matrix: &'a Matrix) -> Self {
        let (numbers, stride) = matrix.padded();
        Self { numbers, columns: matrix.columns(), stride }
    }

    /// All but the first row.
    fn without_first(self) -> Self {
        Self { numbers: &self.numbers[self.stride..], ..self }
    }

    /// Copies the rows `now` one after another into the first target from row `at` on, the rows
    /// after them into the second and so on, calling those of `next` meanwhile; does nothing if the
    /// targets are empty.
    #[inline(always)]
    fn copy<const K: usize>(
        self,
        now: &[usize],
        next: &[usize],
        targets: [&mut [f32]; K],
        at: usize,
    ) {
        if targets.iter().any(|target| target.is_empty()) {
            return;
        }
        let targets = targets.map(|target| &mut target[at * self.columns..]);
        match self.columns {
            1 => self.copy_as(now, next, targets, copy_whole::<1>),
            2 => self.copy_as(now, next, targets, copy_whole::<2>),
            4 => self.copy_as(now, next, targets, copy_whole::<4>),
            8 => self.copy_as(now, next, targets, copy_whole::<8>),
            3 => self.copy_as(now, next, targets, copy_ends::<2>),
            5..=7 => self.copy_as(now, next, targets, copy_ends::<4>),
            9..=16 => self.copy_as(now, next, targets, copy_ends::<8>),
            17..=32 => self.copy_as(now, next, targets, copy_ends::<16>),
            33..=64 => self.copy_as(now, next, targets, copy_ends::<32>),
            _ => self.copy_as(now, next, targets, <[f32]>::copy_from_slice),
        }
    }

    #[inline(always)]
    fn copy_as<const K: usize>(
        self,
        now: &[usize],
        next: &[usize],
        mut targets: [&mut [f32]; K],
        copy: impl Fn(&mut [f32], &[f32]),
    ) {
        let Self { numbers, columns, stride } = self;
        for (at, &row) in now.iter().enumerate() {
            if let Some(&row) = next.get(at) {
                self.prefetch::<K>(row);
            }
            let source = &numbers[row * stride..][..(K - 1) * stride + columns];
            for (k, target) in targets.iter_mut().enumerate() {
                let rest = &mut target[at * columns..];
                copy(&mut rest[..columns], &source[k * stride..][..columns]);
            }
        }
        for &row in next.get(now.len()..).unwrap_or_default() {
            self.prefetch::<K>(row);
        }
    }

    /// Asks the processor to bring `K` rows into its cache while it does something else.
    #[inline(always)]
    fn prefetch<const K: usize>(&self, row: usize) {
        let start = self.numbers.as_ptr().wrapping_add(row * self.stride);
        let length = (K - 1) * self.stride + self.columns;
        for line in (0..length).step_by(LINE) {
            prefetch(start.wrapping_add(line));
        }
        // Rows that neither fill lines nor divide one may reach into one more.
        if !self.stride.is_multiple_of(LINE) && !LINE.is_multiple_of(self.stride) {
            prefetch(start.wrapping_add(length - 1));
        }
    }
}

/// Copies a row of `N` to `2 N` numbers as its first `N` and its last `N`: two moves of a fixed
/// length, which may overlap, are faster than a call for a length unknown to the compiler.
#[inline(always)]
fn copy_ends<const N: usize>(target: &mut [f32], source: &[f32]) {
    let last = source.len() - N;
    target[..N].copy_from_slice(&source[..N]);
    target[last..].copy_from_slice(&source[last..]);
}

/// Copies a row of `N` numbers at once.
#[inline(always)]
fn copy_whole<const N: usize>(target: &mut [f32], source: &[f32]) {
    target[..N].copy_from_slice(&source[..N]);
}

/// Into the second-level cache, which has room for more requests under way than the first.
#[inline(always)]
fn prefetch(number: *const f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint; it reads nothing and cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(number.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = number;
}
