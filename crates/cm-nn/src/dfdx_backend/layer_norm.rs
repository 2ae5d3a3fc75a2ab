//! Layer normalisation.

use super::linear::column_sums;
use super::{DfdxBackend, Matrix, parallel};
use crate::Result;

pub(super) fn layer_norm(
    backend: &DfdxBackend,
    x: &Matrix,
    gain: &Matrix,
    bias: &Matrix,
    epsilon: f32,
) -> Result<Matrix> {
    let places = [backend.place(x), backend.place(gain), backend.place(bias)];
    let columns = x.shape[1];
    // The normalised rows are what the gradients need; the result is one pass more.
    let mut normal = backend.pool().take(x.values.len());
    let mut deviations = vec![0.0; x.shape[0]];
    parallel::vectorised(|| {
        let rows = x.values.chunks_exact(columns).zip(normal.chunks_exact_mut(columns));
        for ((x, normal), deviation) in rows.zip(&mut deviations) {
            *deviation = normalise(x, normal, epsilon);
        }
    });
    let mut y = backend.pool().take(normal.len());
    let (gains, biases) = (&gain.values[..], &bias.values[..]);
    parallel::row_chunks(&mut y, columns, |first, rows| {
        for (offset, y) in rows.chunks_exact_mut(columns).enumerate() {
            let normal = &normal[(first + offset) * columns..][..columns];
            let affine = gains.iter().zip(biases);
            for ((y, normal), (gain, bias)) in y.iter_mut().zip(normal).zip(affine) {
                *y = gain * normal + bias;
            }
        }
    });
    let normal = super::memory::Buffer::new(normal, &backend.inner.pool);
    backend.record(x.shape, y, &places.each_ref(), |_| {
        let (gain, places) = (gain.values.clone(), places.clone());
        move |slots, mut dy| {
            let [x_place, gain_place, bias_place] = &places;
            if let Some(place) = bias_place {
                slots.write(place, columns, |dbias, first| column_sums(&dy, dbias, first))?;
            }
            if let Some(place) = gain_place {
                let mut products = slots.pool().copy(&dy);
                parallel::update(&mut products, &normal, |dy, normal| dy * normal);
                slots.write(place, columns, |dgain, first| column_sums(&products, dgain, first))?;
                slots.pool().give(products);
            }
            let Some(place) = x_place else { return Ok(()) };
            parallel::vectorised(|| {
                let rows = dy.chunks_exact_mut(columns).zip(normal.chunks_exact(columns));
                for ((dy, normal), &deviation) in rows.zip(&deviations) {
                    input_gradient(dy, normal, &gain, deviation);
                }
            });
            slots.add(place, dy)
        }
    })
}

/// Writes `(x - mean) / deviation` and returns the deviation `sqrt(variance + epsilon)`.
#[inline(always)]
fn normalise(x: &[f32], normal: &mut [f32], epsilon: f32) -> f32 {
    let count = x.len() as f32;
    let mean = super::reduce::sum(x) / count;
    let variance = super::reduce::sum_of(x, |x| (x - mean) * (x - mean)) / count;
    let deviation = (variance + epsilon).sqrt();
    for (normal, x) in normal.iter_mut().zip(x) {
        *normal = (x - mean) / deviation;
    }
    deviation
}

/// With `g = gain dy` and `h` the normalised row: `dx = (g - mean(g) - h mean(g h)) / deviation`, in place.
#[inline(always)]
fn input_gradient(dy: &mut [f32], normal: &[f32], gain: &[f32], deviation: f32) {
    let count = dy.len() as f32;
    dy.iter_mut().zip(gain).for_each(|(dy, gain)| *dy *= gain);
    let mean = super::reduce::sum(dy) / count;
    let dot = dy.iter().zip(normal).map(|(g, h)| f64::from(*g) * f64::from(*h)).sum::<f64>();
    let along = dot as f32 / count;
    for (g, h) in dy.iter_mut().zip(normal) {
        *g = (*g - mean - h * along) / deviation;
    }
}
