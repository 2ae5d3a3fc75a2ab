//! Log-density of a normal distribution squashed by tanh.

use super::math::{artanh, log_normal_cdf};
use super::{DfdxBackend, Matrix};
use crate::Result;
use crate::backend::ACTION_BOUND;

pub(super) fn tanh_normal_log_density(
    backend: &DfdxBackend,
    mean: &Matrix,
    scale: &Matrix,
    action: &Matrix,
) -> Result<Matrix> {
    let places = [backend.place(mean), backend.place(scale), backend.place(action)];
    let [rows, columns] = mean.shape;
    // Few elements, each evaluated once in double precision with its derivatives.
    let terms = mean.values.iter().zip(scale.values.iter()).zip(action.values.iter());
    let terms = terms.map(|((&mean, &scale), &action)| {
        Term::new(f64::from(mean), f64::from(scale), f64::from(action))
    });
    let terms = terms.collect::<Vec<_>>();
    let sums =
        terms.chunks_exact(columns).map(|row| row.iter().map(|term| term.value).sum::<f64>());
    let y = sums.map(|sum| sum as f32).collect();
    backend.record([rows, 1], y, &places.each_ref(), |_| {
        let places = places.clone();
        move |slots, dy| {
            let slopes: [fn(&Term) -> f64; 3] =
                [|term| term.mean, |term| term.scale, |term| term.action];
            for (place, slope) in places.iter().zip(slopes) {
                let Some(place) = place else { continue };
                let rows = terms.chunks_exact(columns).zip(&dy);
                let gradient = rows.flat_map(|(row, &dy)| {
                    row.iter().map(move |term| (slope(term) * f64::from(dy)) as f32)
                });
                slots.add(place, gradient.collect())?;
            }
            Ok(())
        }
    })
}

/// One action's log-density and its derivatives.
struct Term {
    value: f64,
    mean: f64,
    scale: f64,
    action: f64,
}

impl Term {
    fn new(mean: f64, scale: f64, action: f64) -> Self {
        let bound = f64::from(ACTION_BOUND);
        if action.abs() >= bound {
            return Self::tail(mean, scale, action.signum(), bound);
        }
        const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_8;
        let z = (artanh(action) - mean) / scale;
        let slope = 1.0 / (1.0 - action * action);
        Self {
            value: -0.5 * z * z - scale.ln() - LN_SQRT_TWO_PI + slope.ln(),
            mean: z / scale,
            scale: (z * z - 1.0) / scale,
            action: (2.0 * action - z / scale) * slope,
        }
    }

    /// The mass beyond the bound on the side of `sign`, spread over the width between the bound and
    /// 1.
    fn tail(mean: f64, scale: f64, sign: f64, bound: f64) -> Self {
        let x = (sign * mean - artanh(bound)) / scale;
        let (log_mass, slope) = log_normal_cdf(x);
        Self {
            value: log_mass - (1.0 - bound).ln(),
            mean: slope * sign / scale,
            scale: -slope * x / scale,
            action: 0.0,
        }
    }
}
