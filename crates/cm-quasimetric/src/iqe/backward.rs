//! Gradients of pairwise distances.
//!
//! Groups do not share features, so each task takes one group and owns its columns of both gradients.

use std::ops::Range;

use rayon::prelude::*;

use super::{Groups, saturate};
use super::forward::{BLOCK, Lengths, Reduced};
use super::order::Order;
use super::sweep::union_backward;
use crate::panels::RowPanels;
use crate::simd::{Kernel, LANES, dispatch};
use crate::{Float, Rows};

/// Fewer groups than this are cut further, by columns, so that every core has work.
const TASKS: usize = 8;

/// Adds the gradients of `sum_ij grad_ij d(x_i, y_j)` to `grad_x` and `grad_y`; returns the gradient of
/// the logit.
pub(crate) fn pairwise_backward<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) -> E {
    let order = Order::new(groups, x);
    let panels = RowPanels::pack(y);
    let count = panels.iter().count();
    let upstream = Upstream::new(groups, &order, &panels, grad, (x.rows(), y.rows()));

    let parts = TASKS.div_ceil(groups.count).min(count);
    let step = count.div_ceil(parts);
    let tasks: Vec<(usize, Range<usize>)> = (0..groups.count)
        .flat_map(|group| {
            (0..count).step_by(step).map(move |part| (group, part..(part + step).min(count)))
        })
        .collect();
    let (order, panels, upstream_ref) = (&order, &panels, &upstream);
    let gradients: Vec<GroupGradient<E>> = tasks
        .par_iter()
        .map(|(group, blocks)| {
            dispatch(GroupBackward {
                groups,
                group: *group,
                blocks: blocks.clone(),
                rows: x.rows(),
                order,
                panels,
                upstream: upstream_ref,
            })
        })
        .collect();

    let (width, size) = (x.columns(), groups.size);
    for ((group, blocks), gradient) in tasks.into_iter().zip(gradients) {
        let features = group * size..(group + 1) * size;
        for (row, part) in gradient.x.chunks_exact(size).enumerate() {
            for (out, &part) in grad_x[row * width..][features.clone()].iter_mut().zip(part) {
                *out += part;
            }
        }
        for (block, panel) in blocks.zip(gradient.y.chunks_exact(size)) {
            for lane in 0..LANES.min(y.rows() - block * LANES) {
                let out = &mut grad_y[(block * LANES + lane) * width..][features.clone()];
                for (out, part) in out.iter_mut().zip(panel) {
                    *out += part[lane];
                }
            }
        }
    }
    saturate(upstream.logit)
}

/// The gradient that reaches the groups' lengths, padded to whole panels.
struct Upstream<E> {
    grad: Vec<[E; LANES]>,
    /// Which group is the largest, of each pair.
    arg: Vec<[u32; LANES]>,
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
        let count = m.div_ceil(LANES);
        let mut padded = vec![[E::ZERO; LANES]; n * count];
        for (padded, grad) in padded.chunks_exact_mut(count).zip(grad.chunks_exact(m)) {
            for (padded, grad) in padded.iter_mut().zip(grad.chunks(LANES)) {
                padded[..grad.len()].copy_from_slice(grad);
            }
        }
        let (total_weight, maximum_weight) = groups.weights();
        let mut arg = vec![[0; LANES]; n * count];
        let mut logit = 0.0;
        if maximum_weight != 0.0 {
            let chunks = arg.par_chunks_mut(BLOCK * count).zip(padded.par_chunks(BLOCK * count));
            let logits: Vec<f64> = chunks
                .enumerate()
                .map(|(block, (arg, grad))| {
                    let first = block * BLOCK;
                    let mut logit = 0.0;
                    let visit = #[inline(always)]
                    |row: usize, columns: Range<usize>, lengths: &Reduced<E>| {
                        let place = (row - first) * count + columns.start / LANES;
                        arg[place] = lengths.arg;
                        for lane in 0..LANES {
                            let slope =
                                groups.logit_slope(lengths.total[lane], lengths.maximum[lane]);
                            logit += grad[place][lane].to_f64() * slope;
                        }
                    };
                    dispatch(Lengths {
                        groups,
                        order,
                        panels,
                        rows: first..(first + BLOCK).min(n),
                        visit,
                    });
                    logit
                })
                .collect();
            logit = logits.into_iter().sum();
        }
        let (total_weight, maximum_weight) = (E::from_f64(total_weight), E::from_f64(maximum_weight));
        Self { grad: padded, arg, total_weight, maximum_weight, logit }
    }

    #[inline(always)]
    fn weights(&self, place: usize, group: u32) -> [E; LANES] {
        let (grad, arg) = (&self.grad[place], &self.arg[place]);
        std::array::from_fn(|lane| {
            let share = if arg[lane] == group { self.maximum_weight } else { E::ZERO };
            grad[lane] * (self.total_weight + share)
        })
    }
}

/// Gradients of one group: `x` is `[rows][size]`, `y` is `[panels][size][LANES]`.
struct GroupGradient<E> {
    x: Vec<E>,
    y: Vec<[E; LANES]>,
}

struct GroupBackward<'a, E> {
    groups: Groups,
    group: usize,
    /// The panels of `y` to go through.
    blocks: Range<usize>,
    rows: usize,
    order: &'a Order<E>,
    panels: &'a RowPanels<E>,
    upstream: &'a Upstream<E>,
}

impl<E: Float> Kernel for GroupBackward<'_, E> {
    type Output = GroupGradient<E>;

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize>(self) -> GroupGradient<E> {
        let size = self.groups.size;
        let right: Vec<[E; LANES]> = self
            .panels
            .iter()
            .skip(self.blocks.start)
            .take(self.blocks.len())
            .flat_map(|(_, panel)| panel[self.group * size..][..size].iter().copied())
            .collect();
        let count = self.upstream.grad.len() / self.rows;
        let mut grad_x = vec![E::ZERO; self.rows * size];
        let mut grad_y = vec![[E::ZERO; LANES]; right.len()];
        let mut reach = vec![[E::ZERO; LANES]; size];
        let mut grad_left = vec![[E::ZERO; LANES]; size];
        for (row, grad_x) in grad_x.chunks_exact_mut(size).enumerate() {
            let (index, left) = self.order.group(row, self.group);
            grad_left.fill([E::ZERO; LANES]);
            let panels = right.chunks_exact(size).zip(grad_y.chunks_exact_mut(size));
            for (block, (right, grad_y)) in self.blocks.clone().zip(panels) {
                let weight = self.upstream.weights(row * count + block, self.group as u32);
                if weight.iter().all(|&weight| weight == E::ZERO) {
                    continue;
                }
                union_backward((index, left), right, weight, &mut reach, &mut grad_left, grad_y);
            }
            for (&i, grad_left) in index.iter().zip(&grad_left) {
                grad_x[i as usize] = grad_left.iter().fold(E::ZERO, |sum, &part| sum + part);
            }
        }
        GroupGradient { x: grad_x, y: grad_y }
    }
}
