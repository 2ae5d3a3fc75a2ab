//! Layer normalisation.

use super::linear::column_sums;
use super::parallel::vectorised;
use super::reduce::{sum, sum_of};
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
    normalise(&x.values, &mut normal, &mut deviations, epsilon);
    let mut y = backend.pool().take(normal.len());
    let (gains, biases) = (&gain.values[..], &bias.values[..]);
    parallel::row_chunks(&mut y, columns, |first, y| {
        scale_and_move(y, &normal[first * columns..], gains, biases);
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
            input_gradient(&mut dy, &normal, &gain, &deviations);
            slots.add(place, dy)
        }
    })
}

vectorised! {
    /// Writes `(x - mean) / deviation` and the deviation `sqrt(variance + epsilon)` of each row.
    fn normalise(x: &[f32], normal: &mut [f32], deviations: &mut [f32], epsilon: f32) {
        let columns = x.len() / deviations.len();
        let rows = x.chunks_exact(columns).zip(normal.chunks_exact_mut(columns));
        for ((x, normal), deviation) in rows.zip(deviations) {
            let mean = sum(x) / columns as f32;
            let variance = sum_of(x, |x| (x - mean) * (x - mean)) / columns as f32;
            *deviation = (variance + epsilon).sqrt();
            for (normal, x) in normal.iter_mut().zip(x) {
                *normal = (x - mean) / *deviation;
            }
        }
    }
}

vectorised! {
    fn scale_and_move(y: &mut [f32], normal: &[f32], gain: &[f32], bias: &[f32]) {
        for (y, normal) in y.chunks_exact_mut(gain.len()).zip(normal.chunks_exact(gain.len())) {
            for ((y, normal), (gain, bias)) in y.iter_mut().zip(normal).zip(gain.iter().zip(bias)) {
                *y = gain * normal + bias;
            }
        }
    }
}

vectorised! {
    /// With `g = gain dy` and `h` the normalised row:
    /// `dx = (g - mean(g) - h mean(g h)) / deviation`, in place.
    fn input_gradient(dy: &mut [f32], normal: &[f32], gain: &[f32], deviations: &[f32]) {
        let columns = gain.len();
        let rows = dy.chunks_exact_mut(columns).zip(normal.chunks_exact(columns));
        for ((dy, normal), deviation) in rows.zip(deviations) {
            dy.iter_mut().zip(gain).for_each(|(dy, gain)| *dy *= gain);
            let mean = sum(dy) / columns as f32;
            let products = dy.iter().zip(normal).map(|(g, h)| f64::from(*g) * f64::from(*h));
            let along = products.sum::<f64>() as f32 / columns as f32;
            for (g, h) in dy.iter_mut().zip(normal) {
                *g = (*g - mean - h * along) / deviation;
            }
        }
    }
}
