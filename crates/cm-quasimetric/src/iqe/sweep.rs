//! The length of a union of intervals, and its gradient, for `P` registers of unions at once.
//!
//! A sweep is a chain of dependent steps; several of them side by side keep the processor busy.
//!
//! With the left ends ascending, the sweep remembers how far right the union reaches:
//! `start = max(reach, x_i); reach = max(start, y_i); length += reach - start`.

use pulp::Simd;

use crate::Float;

/// The lengths of the unions of the intervals `[x_i, y_i]`, which come in ascending order of `x_i`.
#[inline(always)]
pub(super) fn union_length<E: Float, S: Simd, const P: usize>(
    simd: S,
    intervals: impl Iterator<Item = (E::Vector<S>, [E::Vector<S>; P])>,
) -> [E::Vector<S>; P] {
    let mut reach = [E::splat(simd, E::NEG_INFINITY); P];
    let mut length = [E::splat(simd, E::ZERO); P];
    for (x, y) in intervals {
        for p in 0..P {
            let start = E::larger(simd, x, reach[p]);
            reach[p] = E::larger(simd, y[p], start);
            length[p] = E::plus(simd, length[p], E::minus(simd, reach[p], start));
        }
    }
    length
}

/// The gradient of `weight * union_length` for one register of unions: calls
/// `add(i, counts, starts, ends)` for each interval. Where it `counts`, its left end's gradient is
/// `-starts`, its right end's is `ends`. `reaches` is scratch, one register per interval.
///
/// Every connected piece of the union starts at one interval's left end and ends at one interval's
/// right end. Empty and hidden intervals do not count; intervals that only touch are separate
/// pieces.
#[inline(always)]
pub(super) fn union_backward<E: Float, S: Simd>(
    simd: S,
    intervals: impl DoubleEndedIterator<Item = (E::Vector<S>, E::Vector<S>)> + ExactSizeIterator + Clone,
    weight: E::Vector<S>,
    reaches: &mut [E::Vector<S>],
    mut add: impl FnMut(usize, E::Mask<S>, E::Vector<S>, E::Vector<S>),
) {
    let mut reach = E::splat(simd, E::NEG_INFINITY);
    for ((_, y), before) in intervals.clone().zip(reaches.iter_mut()) {
        *before = reach;
        reach = E::larger(simd, y, reach);
    }
    // Going back, `ends` is the weight if the next interval starts a new piece, else 0.
    let zero = E::splat(simd, E::ZERO);
    let mut ends = weight;
    for (i, (x, y)) in intervals.enumerate().rev() {
        let before = reaches[i];
        let counts = E::exceeds(simd, y, E::larger(simd, x, before));
        let starts = E::select(simd, E::exceeds(simd, before, x), zero, weight);
        add(i, counts, starts, ends);
        ends = E::select(simd, counts, starts, ends);
    }
}

/// The lengths of all groups, reduced, for a register of pairs.
#[derive(Clone, Copy)]
pub(super) struct Reduced<E: Float, S: Simd> {
    pub(super) total: E::Vector<S>,
    pub(super) maximum: E::Vector<S>,
    /// The first group that attains the maximum, in the form of
    /// [`from_index`](crate::float::Lanes::from_index).
    pub(super) arg: E::Vector<S>,
}

impl<E: Float, S: Simd> Reduced<E, S> {
    #[inline(always)]
    pub(super) fn new(simd: S) -> Self {
        let zero = E::splat(simd, E::ZERO);
        Self { total: zero, maximum: E::splat(simd, E::NEG_INFINITY), arg: zero }
    }

    /// Takes in the length of the next group.
    #[inline(always)]
    pub(super) fn push(&mut self, simd: S, group: usize, length: E::Vector<S>) {
        let larger = E::exceeds(simd, length, self.maximum);
        self.total = E::plus(simd, self.total, length);
        self.maximum = E::larger(simd, length, self.maximum);
        self.arg = E::select(simd, larger, E::splat(simd, E::from_index(group)), self.arg);
    }
}
