//! The length of a union of intervals, and its gradient, for `L` right ends side by side.
//!
//! With the left ends ascending, the sweep remembers how far right it has reached:
//! `length += relu(y_i - max(x_i, reach)); reach = max(reach, y_i)`.

use crate::Float;
use crate::float::maximum;

/// The length of the union of the intervals `[x_i, y_i]`.
///
/// `left` are the left ends in ascending order, `index` where each stands in `right`.
#[inline(always)]
pub(super) fn union_length<E: Float, const L: usize>(
    (index, left): (&[u32], &[E]),
    right: &[[E; L]],
) -> [E; L] {
    let mut reach = [E::NEG_INFINITY; L];
    let mut length = [E::ZERO; L];
    for (&i, &x) in index.iter().zip(left) {
        let y = &right[i as usize];
        for lane in 0..L {
            let start = maximum(x, reach[lane]);
            length[lane] += maximum(y[lane] - start, E::ZERO);
            reach[lane] = maximum(y[lane], reach[lane]);
        }
    }
    length
}

/// Adds the gradient of `weight * union_length` to `grad_left` (in ascending order, like `left`) and
/// `grad_right` (like `right`). `reach` is scratch of the group's size.
///
/// Every connected piece of the union ends at one interval's right end (+1) and starts at one interval's
/// left end (-1). Empty intervals have no gradient; intervals that only touch count as separate
/// pieces.
#[inline(always)]
pub(super) fn union_backward<E: Float, const L: usize>(
    (index, left): (&[u32], &[E]),
    right: &[[E; L]],
    weight: [E; L],
    reach: &mut [[E; L]],
    grad_left: &mut [[E; L]],
    grad_right: &mut [[E; L]],
) {
    let mut before = [E::NEG_INFINITY; L];
    for ((&i, reach), _) in index.iter().zip(reach.iter_mut()).zip(left) {
        *reach = before;
        let y = &right[i as usize];
        for lane in 0..L {
            before[lane] = maximum(y[lane], before[lane]);
        }
    }
    // Going back, `ends` is the weight if the next interval starts a new piece, else 0.
    let mut ends = weight;
    let sorted = index.iter().zip(left).zip(reach.iter()).zip(grad_left.iter_mut());
    for (((&i, &x), before), grad_left) in sorted.rev() {
        let (y, grad_right) = (&right[i as usize], &mut grad_right[i as usize]);
        for lane in 0..L {
            let counts = y[lane] > maximum(x, before[lane]);
            let starts = if x >= before[lane] { weight[lane] } else { E::ZERO };
            grad_right[lane] += if counts { ends[lane] } else { E::ZERO };
            grad_left[lane] -= if counts { starts } else { E::ZERO };
            ends[lane] = if counts { starts } else { ends[lane] };
        }
    }
}
