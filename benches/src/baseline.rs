//! What one would write without this workspace: broadcasting in dfdx, and a sort for every pair.

use cm_quasimetric::Head;
use dfdx::prelude::*;

use crate::heads::FEATURES;

type Matrix = Tensor<(usize, usize), f32, Cpu>;

/// Pairwise distances and their weighted gradients, composed of dfdx's broadcasting operations (MRN
/// and Max), which builds temporaries of n x n x d.
pub fn broadcast(dev: &Cpu, head: Head, x: &[f32], y: &[f32], grad: &[f32], n: usize) -> f32 {
    let x: Matrix = dev.tensor_from_vec(x.to_vec(), (n, FEATURES));
    let y: Matrix = dev.tensor_from_vec(y.to_vec(), (n, FEATURES));
    let grad: Matrix = dev.tensor_from_vec(grad.to_vec(), (n, n));
    let cube = (n, n, FEATURES);
    let difference = x.leaky_trace().broadcast_like::<_, Axis<1>>(&cube)
        - y.leaky_trace().broadcast_like::<_, Axis<0>>(&cube);
    let distances = match head {
        Head::Max => difference.relu().max::<(usize, usize), Axis<2>>(),
        Head::Mrn { .. } => {
            let symmetric = difference.with_empty_tape().slice((.., .., ..FEATURES / 2));
            let asymmetric = difference.slice((.., .., FEATURES / 2..));
            let asymmetric = asymmetric.relu().max::<(usize, usize), Axis<2>>();
            let square = symmetric.square().sum::<(usize, usize), Axis<2>>();
            (square + 1e-8).sqrt() + asymmetric
        }
        _ => unreachable!("IQE needs a sort, which dfdx does not have"),
    };
    let gradients = (distances * grad).sum::<Rank0, _>().backward();
    gradients.get(&x)[[0, 0]] + gradients.get(&y)[[0, 0]]
}

/// Row-wise distances and their weighted gradients, composed of dfdx's operations (MRN and Max).
pub fn composed(dev: &Cpu, head: Head, x: &[f32], y: &[f32], grad: &[f32], n: usize) -> f32 {
    let x: Matrix = dev.tensor_from_vec(x.to_vec(), (n, FEATURES));
    let y: Matrix = dev.tensor_from_vec(y.to_vec(), (n, FEATURES));
    let grad: Tensor<(usize,), f32, _> = dev.tensor_from_vec(grad.to_vec(), (n,));
    let difference = x.leaky_trace() - y.leaky_trace();
    let distances = match head {
        Head::Max => difference.relu().max::<(usize,), Axis<1>>(),
        Head::Mrn { .. } => {
            let symmetric = difference.with_empty_tape().slice((.., ..FEATURES / 2));
            let asymmetric = difference.slice((.., FEATURES / 2..));
            let square = symmetric.square().sum::<(usize,), Axis<1>>();
            (square + 1e-8).sqrt() + asymmetric.relu().max::<(usize,), Axis<1>>()
        }
        _ => unreachable!("IQE needs a sort, which dfdx does not have"),
    };
    let gradients = (distances * grad).sum::<Rank0, _>().backward();
    gradients.get(&x)[[0, 0]] + gradients.get(&y)[[0, 0]]
}

/// IQE distances (mean of the maximum and the mean over groups of 8 intervals) and their weighted
/// gradients, with a sort for every pair and group. `pairs` are the rows that meet.
pub fn sort_per_pair(
    x: &[f32],
    y: &[f32],
    grad: &[f32],
    pairs: impl Iterator<Item = (usize, usize)>,
) -> f32 {
    let groups = FEATURES / 8;
    let (mut grad_x, mut grad_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    let mut total = 0.0;
    for ((i, j), &grad) in pairs.zip(grad) {
        let (x, y) = (&x[i * FEATURES..][..FEATURES], &y[j * FEATURES..][..FEATURES]);
        let pieces: Vec<Vec<(usize, usize)>> =
            (0..groups).map(|group| pieces(x, y, group * 8)).collect();
        let lengths: Vec<f32> = pieces
            .iter()
            .map(|pieces| pieces.iter().map(|&(left, right)| y[right] - x[left]).sum())
            .collect();
        let largest = (0..groups).max_by(|&a, &b| lengths[a].total_cmp(&lengths[b])).unwrap_or(0);
        total += 0.5 * lengths[largest] + 0.5 * lengths.iter().sum::<f32>() / groups as f32;
        for (group, pieces) in pieces.iter().enumerate() {
            let share = if group == largest { 0.5 } else { 0.0 } + 0.5 / groups as f32;
            for &(left, right) in pieces {
                grad_x[i * FEATURES + left] -= share * grad;
                grad_y[j * FEATURES + right] += share * grad;
            }
        }
    }
    total + grad_x[0] + grad_y[0]
}

/// The connected pieces of one group's union, as the features of their left and right ends.
fn pieces(x: &[f32], y: &[f32], first: usize) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (first..first + 8).filter(|&k| x[k] < y[k]).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for k in order {
        match pieces.last_mut() {
            Some((_, right)) if x[k] < y[*right] => {
                if y[k] > y[*right] {
                    *right = k;
                }
            }
            _ => pieces.push((k, k)),
        }
    }
    pieces
}
