//! Threads and vector instructions for loops over elements.
//!
//! Work is cut into chunks of fixed size, so that no sum depends on how many threads there are.

use rayon::prelude::*;

/// Shorter loops stay on the calling thread.
const SHORTEST_SPLIT: usize = 1 << 15;
/// Elements that one task does.
pub(super) const CHUNK: usize = 1 << 13;

/// Runs `f`, compiled for the widest vector instructions of this machine. `f` and what it calls must be inlined to profit.
#[inline]
pub(super) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(f)
}

/// `f(start, chunk)` for consecutive chunks of `out` of `size` elements (the last may be shorter), on several threads if `out` is long.
pub(super) fn chunks(out: &mut [f32], size: usize, f: impl Fn(usize, &mut [f32]) + Sync + Send) {
    let run = |(index, chunk): (usize, &mut [f32])| vectorised(|| f(index * size, chunk));
    if out.len() < SHORTEST_SPLIT {
        out.chunks_mut(size).enumerate().for_each(run);
    } else {
        out.par_chunks_mut(size).enumerate().for_each(run);
    }
}

/// `f(first_row, rows)` for consecutive groups of whole rows of `columns` elements.
pub(super) fn row_chunks(
    out: &mut [f32],
    columns: usize,
    f: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let rows = (CHUNK / columns).max(1);
    chunks(out, rows * columns, |start, chunk| f(start / columns, chunk));
}

/// `out[i] = f(x[i])`.
#[inline(always)]
pub(super) fn map(out: &mut [f32], x: &[f32], f: impl Fn(f32) -> f32 + Sync + Send) {
    chunks(out, CHUNK, |start, out| {
        for (out, &x) in out.iter_mut().zip(&x[start..]) {
            *out = f(x);
        }
    });
}

/// `out[i] = f(out[i], x[i])`.
#[inline(always)]
pub(super) fn update(out: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32 + Sync + Send) {
    chunks(out, CHUNK, |start, out| {
        for (out, &x) in out.iter_mut().zip(&x[start..]) {
            *out = f(*out, x);
        }
    });
}

/// `f(start, chunk)` for consecutive chunks of a short `out` of `size` elements, on several threads if the `work` is large.
pub(super) fn tasks(
    out: &mut [f32],
    size: usize,
    work: usize,
    f: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let run = |(index, chunk): (usize, &mut [f32])| vectorised(|| f(index * size, chunk));
    if work < SHORTEST_SPLIT {
        out.chunks_mut(size).enumerate().for_each(run);
    } else {
        out.par_chunks_mut(size).enumerate().for_each(run);
    }
}
