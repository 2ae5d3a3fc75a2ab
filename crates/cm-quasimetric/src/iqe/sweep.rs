//! The length of a union of intervals, and its gradient, for a register of unions at once.
//!
//! With the left ends ascending, the sweep remembers how far right it has reached:
//! `length += relu(y_i - max(x_i, reach)); reach = max(reach, y_i)`.

use pulp::Simd;

use crate::Float;

/// The length of the union of the intervals `(x_i, y_i)`, which come in ascending order of `x_i`.
#[inline(always)]
pub(super) fn union_length<E: Float, S: Simd>(
    simd: S,
    intervals: impl Iterator<Item = (E::Vector<S>, E::Vector<S>)>,
) -> E::Vector<S> {
    let zero = E::splat(simd, E::ZERO);
    let mut reach = E::splat(simd, E::NEG_INFINITY);
    let mut length = zero;
    for (x, y) in intervals {
        let start = E::larger(simd, x, reach);
        length = E::plus(simd, length, E::larger(simd, E::minus(simd, y, start), zero));
        reach = E::larger(simd, y, reach);
    }
    length
}

/// The gradient of `weight * union_length`: calls `add(i, grad_x, grad_y)` for each interval.
/// `reach` is scratch, one register per interval.
///
/// Every connected piece of the union ends at one interval's right end (+1) and starts at one
/// interval's left end (-1). Empty intervals have no gradient; intervals that only touch count as
/// separate pieces.
#[inline(always)]
pub(super) fn union_backward<E: Float, S: Simd>(
    simd: S,
    intervals: impl DoubleEndedIterator<Item = (E::Vector<S>, E::Vector<S>)> + ExactSizeIterator + Clone,
    weight: E::Vector<S>,
    reach: &mut [E::Vector<S>],
    mut add: impl FnMut(usize, E::Vector<S>, E::Vector<S>),
) {
    let zero = E::splat(simd, E::ZERO);
    let mut before = E::splat(simd, E::NEG_INFINITY);
    for ((_, y), reach) in intervals.clone().zip(reach.iter_mut()) {
        *reach = before;
        before = E::larger(simd, y, before);
    }
    // Going back, `ends` is the weight if the next interval starts a new piece, else 0.
    let mut ends = weight;
    for (i, (x, y)) in intervals.enumerate().rev() {
        let before = reach[i];
        let counts = E::exceeds(simd, y, E::larger(simd, x, before));
        let starts = E::select(simd, E::exceeds(simd, before, x), zero, weight);
        let grad_x = E::minus(simd, zero, E::select(simd, counts, starts, zero));
        add(i, grad_x, E::select(simd, counts, ends, zero));
        ends = E::select(simd, counts, starts, ends);
    }
}

/// The lengths of all groups, reduced, for a register of pairs.
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
