//! The length of a union of intervals, and its gradient, for a register of right ends at once.
//!
//! With the left ends ascending, the sweep remembers how far right it has reached:
//! `length += relu(y_i - max(x_i, reach)); reach = max(reach, y_i)`.

use pulp::Simd;

use crate::Float;

/// The length of the union of the intervals `[x_i, y_i]`.
///
/// `left` are the left ends in ascending order, `index` where each stands in `right`.
#[inline(always)]
pub(super) fn union_length<E: Float, S: Simd>(
    simd: S,
    (index, left): (&[u32], &[E]),
    right: &[E::Vector<S>],
) -> E::Vector<S> {
    // A length the compiler knows lets it unroll the sweep.
    match right.len() {
        8 => sweep::<E, S>(simd, (&index[..8], &left[..8]), &right[..8]),
        _ => sweep::<E, S>(simd, (index, left), right),
    }
}

#[inline(always)]
fn sweep<E: Float, S: Simd>(
    simd: S,
    (index, left): (&[u32], &[E]),
    right: &[E::Vector<S>],
) -> E::Vector<S> {
    let zero = E::splat(simd, E::ZERO);
    let mut reach = E::splat(simd, E::NEG_INFINITY);
    let mut length = zero;
    for (&i, &x) in index.iter().zip(left) {
        let y = right[i as usize];
        let start = E::larger(simd, E::splat(simd, x), reach);
        length = E::plus(simd, length, E::larger(simd, E::minus(simd, y, start), zero));
        reach = E::larger(simd, y, reach);
    }
    length
}

/// Adds the gradient of `weight * union_length` to `grad_left` (in ascending order, like `left`) and
/// `grad_right` (like `right`). `reach` is scratch of the group's size.
///
/// Every connected piece of the union ends at one interval's right end (+1) and starts at one
/// interval's left end (-1). Empty intervals have no gradient; intervals that only touch count as
/// separate pieces.
#[inline(always)]
pub(super) fn union_backward<E: Float, S: Simd>(
    simd: S,
    (index, left): (&[u32], &[E]),
    right: &[E::Vector<S>],
    weight: E::Vector<S>,
    reach: &mut [E::Vector<S>],
    grad_left: &mut [E::Vector<S>],
    grad_right: &mut [E::Vector<S>],
) {
    match right.len() {
        8 => sweep_backward::<E, S>(
            simd,
            (&index[..8], &left[..8]),
            &right[..8],
            weight,
            &mut [weight; 8],
            &mut grad_left[..8],
            &mut grad_right[..8],
        ),
        _ => {
            sweep_backward::<E, S>(simd, (index, left), right, weight, reach, grad_left, grad_right)
        }
    }
}

#[inline(always)]
fn sweep_backward<E: Float, S: Simd>(
    simd: S,
    (index, left): (&[u32], &[E]),
    right: &[E::Vector<S>],
    weight: E::Vector<S>,
    reach: &mut [E::Vector<S>],
    grad_left: &mut [E::Vector<S>],
    grad_right: &mut [E::Vector<S>],
) {
    let zero = E::splat(simd, E::ZERO);
    let mut before = E::splat(simd, E::NEG_INFINITY);
    for (&i, reach) in index.iter().zip(reach.iter_mut()) {
        *reach = before;
        before = E::larger(simd, right[i as usize], before);
    }
    // Going back, `ends` is the weight if the next interval starts a new piece, else 0.
    let mut ends = weight;
    let sorted = index.iter().zip(left).zip(reach.iter()).zip(grad_left.iter_mut());
    for (((&i, &x), &before), grad_left) in sorted.rev() {
        let (x, y, grad_right) =
            (E::splat(simd, x), right[i as usize], &mut grad_right[i as usize]);
        let counts = E::exceeds(simd, y, E::larger(simd, x, before));
        let starts = E::select(simd, E::exceeds(simd, before, x), zero, weight);
        *grad_right = E::plus(simd, *grad_right, E::select(simd, counts, ends, zero));
        *grad_left = E::minus(simd, *grad_left, E::select(simd, counts, starts, zero));
        ends = E::select(simd, counts, starts, ends);
    }
}
