//! Distances between the rows of `x` and the same rows of `y`, a register of rows at a time.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::order::{network, sort};
use super::sweep::{Reduced, union_backward, union_length};
use super::{Groups, SORT, saturate};
use crate::panels::{MOST_LANES, RowPanels, lanes};
use crate::threads::least;
use crate::{Float, Rows};

/// Writes `distances[i] = d(x_i, y_i)`.
pub(crate) fn rowwise<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    distances: &mut [E],
) {
    let (network, width) = (&network(groups.size), x.columns());
    let (x, y) = (RowPanels::pack(x), RowPanels::pack(y));
    let panels: Vec<(&[E], &[E])> = x.iter().zip(y.iter()).map(|(x, y)| (x.1, y.1)).collect();
    let least = least(SORT * lanes::<E>() * width);
    let pairs = distances.par_chunks_mut(lanes::<E>()).zip(panels).with_min_len(least);
    pairs.for_each(|(distances, (x, y))| {
        Arch::new().dispatch(Forward { groups, network, x, y, distances });
    });
}

/// Adds the gradients of `sum_i grad_i d(x_i, y_i)` to `grad_x` and `grad_y`; returns the gradient
/// of the logit.
pub(crate) fn rowwise_backward<E: Float>(
    groups: Groups,
    x: Rows<'_, E>,
    y: Rows<'_, E>,
    grad: &[E],
    grad_x: &mut [E],
    grad_y: &mut [E],
) -> E {
    let network = &network(groups.size);
    let (rows, chunk) = (lanes::<E>(), lanes::<E>() * x.columns());
    let (x, y) = (RowPanels::pack(x), RowPanels::pack(y));
    let panels: Vec<(&[E], &[E])> = x.iter().zip(y.iter()).map(|(x, y)| (x.1, y.1)).collect();
    let gradients = grad_x.par_chunks_mut(chunk).zip(grad_y.par_chunks_mut(chunk));
    let logits: Vec<f64> = grad
        .par_chunks(rows)
        .zip(panels)
        .zip(gradients)
        .with_min_len(least(2 * SORT * chunk))
        .map(|((grad, (x, y)), (grad_x, grad_y))| {
            Arch::new().dispatch(Backward { groups, network, x, y, grad, grad_x, grad_y })
        })
        .collect();
    saturate(logits.into_iter().sum())
}

struct Forward<'a, E> {
    groups: Groups,
    network: &'a [(usize, usize)],
    x: &'a [E],
    y: &'a [E],
    distances: &'a mut [E],
}

impl<E: Float> WithSimd for Forward<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut sorted = Sorted::<E, S>::new(simd, self.groups, self.network);
        let reduced = sorted.reduce(simd, self.x, self.y);
        let lengths = values::<E, S>(simd, reduced.total, reduced.maximum);
        for (distance, (total, maximum)) in self.distances.iter_mut().zip(lengths) {
            *distance = self.groups.reduce(total, maximum);
        }
    }
}

struct Backward<'a, E> {
    groups: Groups,
    network: &'a [(usize, usize)],
    x: &'a [E],
    y: &'a [E],
    grad: &'a [E],
    grad_x: &'a mut [E],
    grad_y: &'a mut [E],
}

impl<E: Float> WithSimd for Backward<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (size, lanes) = (self.groups.size, E::lanes::<S>());
        let width = self.groups.count * size;
        let mut sorted = Sorted::<E, S>::new(simd, self.groups, self.network);
        let reduced = sorted.reduce(simd, self.x, self.y);
        let (total_weight, maximum_weight) = self.groups.weights();
        let total_weight = E::splat(simd, E::from_f64(total_weight));
        let both = E::plus(simd, total_weight, E::splat(simd, E::from_f64(maximum_weight)));
        let grad = E::load(simd, self.grad);
        let mut parts = vec![E::ZERO; 3 * size * lanes];
        let zero = E::splat(simd, E::ZERO);
        let mut reaches = vec![zero; size];
        for group in 0..self.groups.count {
            sorted.sort(simd, self.x, self.y, group);
            let largest = E::equals(simd, reduced.arg, E::splat(simd, E::from_index(group)));
            let weight = E::times(simd, grad, E::select(simd, largest, both, total_weight));
            let intervals = sorted.x.iter().copied().zip(sorted.y.iter().copied());
            let slots = E::as_vectors_mut::<S>(&mut parts).0;
            union_backward::<E, S>(
                simd,
                intervals,
                weight,
                &mut reaches,
                #[inline(always)]
                |i, counts, starts, ends| {
                    slots[3 * i] = sorted.index[i];
                    slots[3 * i + 1] = E::select(simd, counts, starts, zero);
                    slots[3 * i + 2] = E::select(simd, counts, ends, zero);
                },
            );
            for lane in 0..self.grad.len() {
                let start = lane * width + group * size;
                for part in parts.chunks_exact(3 * lanes) {
                    let feature = start + part[lane].to_index();
                    self.grad_x[feature] -= part[lanes + lane];
                    self.grad_y[feature] += part[2 * lanes + lane];
                }
            }
        }
        let lengths = values::<E, S>(simd, reduced.total, reduced.maximum).zip(self.grad);
        lengths.map(|((t, m), g)| g.to_f64() * self.groups.logit_slope(t, m)).sum()
    }
}

/// Two registers, lane by lane.
#[inline(always)]
fn values<E: Float, S: Simd>(
    simd: S,
    a: E::Vector<S>,
    b: E::Vector<S>,
) -> impl Iterator<Item = (E, E)> {
    let mut lanes = ([E::ZERO; MOST_LANES], [E::ZERO; MOST_LANES]);
    E::store(simd, &mut lanes.0, a);
    E::store(simd, &mut lanes.1, b);
    lanes.0.into_iter().zip(lanes.1).take(E::lanes::<S>())
}

/// One group of a panel of rows, its intervals in ascending order of their left ends.
struct Sorted<'a, E: Float, S: Simd> {
    groups: Groups,
    network: &'a [(usize, usize)],
    x: Vec<E::Vector<S>>,
    y: Vec<E::Vector<S>>,
    index: Vec<E::Vector<S>>,
}

impl<'a, E: Float, S: Simd> Sorted<'a, E, S> {
    #[inline(always)]
    fn new(simd: S, groups: Groups, network: &'a [(usize, usize)]) -> Self {
        let empty = vec![E::splat(simd, E::ZERO); groups.size];
        Self { groups, network, x: empty.clone(), y: empty.clone(), index: empty }
    }

    #[inline(always)]
    fn sort(&mut self, simd: S, x: &[E], y: &[E], group: usize) {
        let range = group * self.groups.size..(group + 1) * self.groups.size;
        self.x.copy_from_slice(&E::as_vectors::<S>(x).0[range.clone()]);
        self.y.copy_from_slice(&E::as_vectors::<S>(y).0[range]);
        for (i, slot) in self.index.iter_mut().enumerate() {
            *slot = E::splat(simd, E::from_index(i));
        }
        let others = [&mut self.y[..], &mut self.index[..]];
        sort::<E, S, 2>(simd, self.network, &mut self.x, others);
    }

    /// The lengths of all groups, reduced.
    #[inline(always)]
    fn reduce(&mut self, simd: S, x: &[E], y: &[E]) -> Reduced<E, S> {
        let mut reduced = Reduced::new(simd);
        for group in 0..self.groups.count {
            self.sort(simd, x, y, group);
            let intervals = self.x.iter().zip(&self.y).map(|(&x, &y)| (x, [y]));
            let [length] = union_length::<E, S, 1>(simd, intervals);
            reduced.push(simd, group, length);
        }
        reduced
    }
}
