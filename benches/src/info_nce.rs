//! Symmetric InfoNCE on a square matrix, with its gradient.

use rayon::prelude::*;

/// The mean over rows and columns of the cross entropy of `scale * values` against the diagonal;
/// writes the gradient with respect to `values`.
///
/// ```
/// let mut grad = [0.0; 4];
/// let loss = cm_benches::info_nce::symmetric(&[0.0; 4], 2, 1.0, &mut grad);
/// assert!((loss - 2.0_f32.ln()).abs() < 1e-6);
/// assert_eq!(grad, [-0.25, 0.25, 0.25, -0.25]);
/// ```
pub fn symmetric(values: &[f32], n: usize, scale: f32, grad: &mut [f32]) -> f32 {
    // Log-sum-exp of each column, streaming over rows.
    let mut largest = vec![f32::NEG_INFINITY; n];
    for row in values.chunks_exact(n) {
        for (largest, &value) in largest.iter_mut().zip(row) {
            *largest = largest.max(scale * value);
        }
    }
    let sums = values
        .par_chunks(32 * n)
        .map(|rows| {
            let mut sums = vec![0.0; n];
            for row in rows.chunks_exact(n) {
                for ((sum, &value), &largest) in sums.iter_mut().zip(row).zip(&largest) {
                    *sum += (scale * value - largest).exp();
                }
            }
            sums
        })
        .reduce(|| vec![0.0; n], |a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect());
    let columns: Vec<f32> = sums.iter().zip(&largest).map(|(sum, max)| sum.ln() + max).collect();

    let weight = 0.5 * scale / n as f32;
    let losses =
        values.par_chunks(n).zip(grad.par_chunks_mut(n)).enumerate().map(|(i, (row, grad))| {
            let largest = row.iter().fold(f32::NEG_INFINITY, |max, &value| max.max(scale * value));
            let sum: f32 = row.iter().map(|&value| (scale * value - largest).exp()).sum();
            let logsumexp = sum.ln() + largest;
            for ((grad, &value), &column) in grad.iter_mut().zip(row).zip(&columns) {
                let logit = scale * value;
                *grad = weight * ((logit - logsumexp).exp() + (logit - column).exp());
            }
            grad[i] -= 2.0 * weight;
            0.5 * (logsumexp + columns[i]) - scale * row[i]
        });
    losses.sum::<f32>() / n as f32
}
