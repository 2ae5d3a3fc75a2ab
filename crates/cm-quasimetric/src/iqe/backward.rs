//! Gradients of pairwise distances.
//!
//! Groups do not share features, so each task takes one group and owns its columns of both
//! gradients.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::forward::{Buffers, Lengths};
use super::order::Order;
use super::sweep::union_backward;
use super::{Groups, SWEEP, saturate};
use crate::panels::RowPanels;
use crate::threads::least;
use crate::{Float, Rows};

/// Rows of `x` that one task takes to find the largest groups.
const BLOCK: usize = 16;

/// Fewer groups than this are cut further, by columns, so that every core has work.
const TASKS: usize = 8;

/// Adds the gradients of `sum_ij grad_ij d(x_i, y_j)` to `grad_x` and `grad_y`; returns the
/// gradient of the logit.
pub(crate) fn pairwise_backward<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) -> E {
    let order = &Order::new(groups, x);
    let panels = &RowPanels::pack(y);
    let upstream = &Upstream::new(groups, order, panels, grad, (x.rows(), y.rows()));
    let rows = x.rows();
    let tasks = tasks(groups.count, panels.iter().len());
    let per_task = rows * panels.padded_rows() * x.columns() / tasks.len();
    let gradients: Vec<GroupGradient<E>> = tasks
        .par_iter()
        .with_min_len(least(SWEEP * per_task))
        .map(|(group, blocks)| {
            let (group, blocks) = (*group, blocks.clone());
            Arch::new().dispatch(GroupBackward {
                groups,
                group,
                blocks,
                rows,
                order,
                panels,
                upstream,
            })
        })
        .collect();

    let (width, size, lanes) = (x.columns(), groups.size, crate::panels::lanes::<E>());
    let chunks = grad_x.par_chunks_mut(width).with_min_len(least(4 * width));
    chunks.enumerate().for_each(|(row, out)| {
        for ((group, _), gradient) in tasks.iter().zip(&gradients) {
            let part = &gradient.x[row * size..][..size];
            for (out, &part) in out[group * size..].iter_mut().zip(part) {
                *out += part;
            }
        }
    });
    let chunks = grad_y.par_chunks_mut(lanes * width).with_min_len(least(4 * lanes * width));
    chunks.enumerate().for_each(|(block, out)| {
        for ((group, blocks), gradient) in tasks.iter().zip(&gradients) {
            if !blocks.contains(&block) {
                continue;
            }
            let panel = &gradient.y[(block - blocks.start) * size * lanes..][..size * lanes];
            for (lane, out) in out.chunks_exact_mut(width).enumerate() {
                let part = panel[lane..].iter().step_by(lanes);
                for (out, &part) in out[group * size..].iter_mut().zip(part) {
                    *out += part;
                }
            }
        }
    });
    saturate(upstream.logit)
}

/// Which group and which panels of `y` each task takes. Depends on the shapes alone, not on the
/// number of threads, so that sums are always formed in the same order.
fn tasks(groups: usize, panels: usize) -> Vec<(usize, Range<usize>)> {
    let step = panels.div_ceil(TASKS.div_ceil(groups).min(panels));
    (0..groups)
        .flat_map(|group| {
            (0..panels).step_by(step).map(move |first| (group, first..(first + step).min(panels)))
        })
        .collect()
}

/// The gradient that reaches the groups' lengths, rows padded to whole registers.
struct Upstream<E> {
    grad: Vec<E>,
    /// Which group is the largest, of each pair; empty where the maximum has no weight.
    arg: Vec<E>,
    total_weight: E,
    maximum_weight: E,
    logit: f64,
}

impl<E: Float> Upstream<E> {
    fn new(
        groups: Groups,
        order: &Order<E>,
        panels: &RowPanels<E>,
        grad: &[E],
        (n, m): (usize, usize),
    ) -> Self {
        let stride = panels.padded_rows();
        let mut padded = vec![E::ZERO; n * stride];
        for (padded, grad) in padded.chunks_exact_mut(stride).zip(grad.chunks_exact(m)) {
            padded[..m].copy_from_slice(grad);
        }
        let (total_weight, maximum_weight) = groups.weights();
        let mut arg = vec![E::ZERO; if maximum_weight == 0.0 { 0 } else { n * stride }];
        let chunks = arg.par_chunks_mut(BLOCK * stride).zip(padded.par_chunks(BLOCK * stride));
        let least = least(SWEEP * BLOCK * stride * groups.count * groups.size);
        let logits: Vec<f64> = chunks
            .with_min_len(least)
            .enumerate()
            .map(|(block, (arg, grad))| {
                let (mut total, mut maximum) = (vec![E::ZERO; arg.len()], vec![E::ZERO; arg.len()]);
                let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
                let reduced = Buffers { total: &mut total, maximum: &mut maximum, arg };
                Arch::new().dispatch(Lengths { groups, order, panels, rows, reduced });
                let lengths = total.iter().zip(&maximum).zip(grad);
                lengths.map(|((&t, &m), &g)| g.to_f64() * groups.logit_slope(t, m)).sum()
            })
            .collect();
        Self {
            grad: padded,
            arg,
            total_weight: E::from_f64(total_weight),
            maximum_weight: E::from_f64(maximum_weight),
            logit: logits.into_iter().sum(),
        }
    }

    /// The gradient that reaches `group` from each pair of a register.
    #[inline(always)]
    fn weight<S: Simd>(&self, simd: S, place: usize, group: E::Vector<S>) -> E::Vector<S> {
        let mut weight = E::splat(simd, self.total_weight);
        if let Some(&arg) = E::as_vectors::<S>(&self.arg).0.get(place) {
            let larger = E::plus(simd, weight, E::splat(simd, self.maximum_weight));
            weight = E::select(simd, E::equals(simd, arg, group), larger, weight);
        }
        E::times(simd, weight, E::as_vectors::<S>(&self.grad).0[place])
    }
}

/// Gradients of one group: `x` is `[rows][size]`, `y` is `[panels][size][lanes]`.
struct GroupGradient<E> {
    x: Vec<E>,
    y: Vec<E>,
}

struct GroupBackward<'a, E: Float> {
    groups: Groups,
    group: usize,
    /// The panels of `y` to go through.
    blocks: Range<usize>,
    rows: usize,
    order: &'a Order<E>,
    panels: &'a RowPanels<E>,
    upstream: &'a Upstream<E>,
}

impl<E: Float> WithSimd for GroupBackward<'_, E> {
    type Output = GroupGradient<E>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> GroupGradient<E> {
        let (size, lanes) = (self.groups.size, E::lanes::<S>());
        let count = self.panels.iter().len();
        let right: Vec<&[E::Vector<S>]> = self
            .panels
            .iter()
            .map(|(_, panel)| &E::as_vectors::<S>(panel).0[self.group * size..][..size])
            .collect();
        let zero = E::splat(simd, E::ZERO);
        let number = E::splat(simd, E::from_index(self.group));
        let mut grad_x = vec![E::ZERO; self.rows * size];
        let mut grad_y = vec![E::ZERO; self.blocks.len() * size * lanes];
        let mut reaches = vec![zero; size];
        let mut grad_left = vec![zero; size];
        for (row, grad_x) in grad_x.chunks_exact_mut(size).enumerate() {
            let (index, left) = self.order.group(row, self.group);
            grad_left.fill(zero);
            let panels = E::as_vectors_mut::<S>(&mut grad_y).0.chunks_exact_mut(size);
            for (block, grad_y) in self.blocks.clone().zip(panels) {
                let weight = self.upstream.weight(simd, row * count + block, number);
                let right = right[block];
                // A size the compiler knows lets it unroll the sweep.
                match size {
                    8 => backward::<E, S>(
                        simd,
                        (&index[..8], &left[..8], &right[..8]),
                        weight,
                        &mut [zero; 8],
                        &mut grad_left[..8],
                        &mut grad_y[..8],
                    ),
                    _ => backward::<E, S>(
                        simd,
                        (index, left, right),
                        weight,
                        &mut reaches,
                        &mut grad_left,
                        grad_y,
                    ),
                }
            }
            for (&i, &grad_left) in index.iter().zip(&grad_left) {
                grad_x[i as usize] = E::sum(simd, grad_left);
            }
        }
        GroupGradient { x: grad_x, y: grad_y }
    }
}

/// Adds the gradient of one group for a register of pairs that share the left ends: to `grad_left`
/// in ascending order, to `grad_right` in the order of `right`.
#[inline(always)]
fn backward<E: Float, S: Simd>(
    simd: S,
    (index, left, right): (&[u32], &[E], &[E::Vector<S>]),
    weight: E::Vector<S>,
    reaches: &mut [E::Vector<S>],
    grad_left: &mut [E::Vector<S>],
    grad_right: &mut [E::Vector<S>],
) {
    let intervals = index.iter().zip(left).map(
        #[inline(always)]
        |(&i, &x)| (E::splat(simd, x), right[i as usize]),
    );
    union_backward::<E, S>(
        simd,
        intervals,
        weight,
        reaches,
        #[inline(always)]
        |i, counts, starts, ends| {
            let (left, right) = (&mut grad_left[i], &mut grad_right[index[i] as usize]);
            *left = E::select(simd, counts, E::minus(simd, *left, starts), *left);
            *right = E::select(simd, counts, E::plus(simd, *right, ends), *right);
        },
    );
}
