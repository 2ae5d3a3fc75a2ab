//! Plain, slow versions of every head, written from the definitions, and random inputs.

use cm_quasimetric::{Head, Reduction, Rows};
use cm_random::{Philox, unit_f64};
use rand_core::Rng;

/// Every head, in several configurations, for 24 features.
pub(crate) const HEADS: [Head; 11] = [
    Head::MRN,
    Head::Mrn { components: 3, epsilon: 0.0 },
    Head::Mrn { components: 12, epsilon: 0.0 },
    Head::Max,
    Head::Iqe { groups: 3, reduction: Reduction::Sum },
    Head::Iqe { groups: 3, reduction: Reduction::Max },
    Head::Iqe { groups: 4, reduction: Reduction::Mean },
    Head::Iqe { groups: 3, reduction: Reduction::MaxMean { logit: -0.7 } },
    Head::Iqe { groups: 1, reduction: Reduction::Sum },
    Head::Iqe { groups: 24, reduction: Reduction::MaxMean { logit: 1.3 } },
    Head::Iqe { groups: 2, reduction: Reduction::Mean },
];
pub(crate) const WIDTH: usize = 24;

/// The distance between two points, from the definition of the head.
pub(crate) fn reference(head: Head, x: &[f64], y: &[f64]) -> f64 {
    match head {
        Head::Mrn { components, epsilon } => {
            let width = x.len() / components;
            let parts = x.chunks(width).zip(y.chunks(width)).map(|(x, y)| {
                let half = width / 2;
                let square: f64 =
                    x[..half].iter().zip(&y[..half]).map(|(x, y)| (x - y).powi(2) + epsilon).sum();
                square.sqrt() + largest(&x[half..], &y[half..])
            });
            parts.sum::<f64>() / components as f64
        }
        Head::Max => largest(x, y),
        Head::Iqe { groups, reduction } => {
            let size = x.len() / groups;
            let lengths: Vec<f64> =
                x.chunks(size).zip(y.chunks(size)).map(|(x, y)| union(x, y)).collect();
            let sum: f64 = lengths.iter().sum();
            let max = lengths.iter().copied().fold(0.0, f64::max);
            let mean = sum / groups as f64;
            match reduction {
                Reduction::Sum => sum,
                Reduction::Max => max,
                Reduction::Mean => mean,
                Reduction::MaxMean { logit } => {
                    let share = 1.0 / (1.0 + (-logit).exp());
                    share * max + (1.0 - share) * mean
                }
                _ => unreachable!("a reduction that has no reference yet"),
            }
        }
        _ => unreachable!("a head that has no reference yet"),
    }
}

fn largest(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x - y).fold(0.0, f64::max)
}

/// Merges overlapping intervals one by one.
fn union(x: &[f64], y: &[f64]) -> f64 {
    let mut intervals: Vec<(f64, f64)> =
        x.iter().copied().zip(y.iter().copied()).filter(|(x, y)| x < y).collect();
    intervals.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (left, right) in intervals {
        match merged.last_mut() {
            Some(last) if left <= last.1 => last.1 = last.1.max(right),
            _ => merged.push((left, right)),
        }
    }
    merged.iter().map(|(left, right)| right - left).sum()
}

/// Numbers in [-1, 1): the same for the same seed.
pub(crate) fn random(seed: u64, length: usize) -> Vec<f64> {
    let mut stream = Philox::new(seed).stream(0, 0);
    (0..length).map(|_| 2.0 * unit_f64(stream.next_u64()) - 1.0).collect()
}

pub(crate) fn to_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

pub(crate) fn pairwise<E: cm_quasimetric::Float>(
    head: Head,
    x: &[E],
    y: &[E],
    width: usize,
) -> Vec<E> {
    head.pairwise_vec(rows(x, width), rows(y, width)).unwrap()
}

pub(crate) fn rowwise<E: cm_quasimetric::Float>(
    head: Head,
    x: &[E],
    y: &[E],
    width: usize,
) -> Vec<E> {
    head.rowwise_vec(rows(x, width), rows(y, width)).unwrap()
}

pub(crate) fn rows<E: cm_quasimetric::Float>(data: &[E], width: usize) -> Rows<'_, E> {
    Rows::new(data, data.len() / width, width).unwrap()
}
