//! Threads and vector instructions for loops over elements.
//!
//! Work is cut into pieces of fixed size, so that no sum depends on how many threads there are.

use rayon::prelude::*;

/// Loops over fewer elements stay on the calling thread.
const SHORTEST_SPLIT: usize = 1 << 15;
/// Elements that one task does.
pub(super) const CHUNK: usize = 1 << 13;

/// Defines a function whose body is compiled once for each level of vector instructions; calls go
/// to the widest that the machine has.
///
/// The loops in the body must not hide behind a call: closures are passed as parameters of a
/// generic type with a bound and called directly, and functions are `#[inline(always)]`.
macro_rules! vectorised {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident $(<$generic:ident: $bound:path>)? (
            $($argument:ident: $type:ty),* $(,)?
        ) $(-> $output:ty)? $body:block
    ) => {
        $(#[$attribute])*
        $visibility fn $name $(<$generic: $bound>)? ($($argument: $type),*) $(-> $output)? {
            struct Arguments<A>(A);
            impl $(<$generic: $bound>)? pulp::WithSimd for Arguments<($($type,)*)> {
                type Output = vectorised!(@output $($output)?);

                #[inline(always)]
                fn with_simd<Instructions: pulp::Simd>(self, _: Instructions) -> Self::Output {
                    let ($($argument,)*) = self.0;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Arguments(($($argument,)*)))
        }
    };
    (@output $output:ty) => { $output };
    (@output) => { () };
}
pub(super) use vectorised;

/// `f(start, chunk)` for consecutive chunks of `out` of `size` elements (the last may be shorter),
/// on several threads if there are many elements of `work` to do.
pub(super) fn tasks(
    out: &mut [f32],
    size: usize,
    work: usize,
    f: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let run = |(index, chunk): (usize, &mut [f32])| f(index * size, chunk);
    if work < SHORTEST_SPLIT {
        out.chunks_mut(size).enumerate().for_each(run);
    } else {
        out.par_chunks_mut(size).enumerate().for_each(run);
    }
}

/// [`tasks`] of about [`CHUNK`] elements of `out`.
pub(super) fn chunks(out: &mut [f32], f: impl Fn(usize, &mut [f32]) + Sync + Send) {
    tasks(out, CHUNK, out.len(), f);
}

/// `f(first_row, rows)` for consecutive groups of whole rows of `columns` elements.
pub(super) fn row_chunks(
    out: &mut [f32],
    columns: usize,
    f: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    let rows = (CHUNK / columns).max(1);
    tasks(out, rows * columns, out.len(), |start, chunk| f(start / columns, chunk));
}

/// `f(rows, rows)` for consecutive groups of whole rows of two matrices of the same shape.
pub(super) fn row_chunks_of_two(
    a: &mut [f32],
    b: &mut [f32],
    columns: usize,
    f: impl Fn(&mut [f32], &mut [f32]) + Sync + Send,
) {
    let size = (CHUNK / columns).max(1) * columns;
    if a.len() < SHORTEST_SPLIT {
        a.chunks_mut(size).zip(b.chunks_mut(size)).for_each(|(a, b)| f(a, b));
    } else {
        a.par_chunks_mut(size).zip(b.par_chunks_mut(size)).for_each(|(a, b)| f(a, b));
    }
}

/// `out[i] = f(x[i])`.
pub(super) fn map(out: &mut [f32], x: &[f32], f: impl Fn(f32) -> f32 + Sync + Send) {
    chunks(out, |start, out| map_chunk(out, &x[start..], &f));
}

/// `x[i] = f(x[i])`.
pub(super) fn map_in_place(x: &mut [f32], f: impl Fn(f32) -> f32 + Sync + Send) {
    chunks(x, |_, x| map_chunk_in_place(x, &f));
}

/// `out[i] = f(out[i], x[i])`.
pub(super) fn update(out: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32 + Sync + Send) {
    chunks(out, |start, out| update_chunk(out, &x[start..], &f));
}

vectorised! {
    fn map_chunk<F: Fn(f32) -> f32>(out: &mut [f32], x: &[f32], f: F) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = f(x);
        }
    }
}

vectorised! {
    fn map_chunk_in_place<F: Fn(f32) -> f32>(x: &mut [f32], f: F) {
        for x in x {
            *x = f(*x);
        }
    }
}

vectorised! {
    fn update_chunk<F: Fn(f32, f32) -> f32>(out: &mut [f32], x: &[f32], f: F) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = f(*out, x);
        }
    }
}
