//! In-place updates of cells.

use rayon::prelude::*;

use super::math::without_tiny;
use super::parallel::vectorised;
use super::{Cell, DfdxBackend, Matrix, parallel, reduce};
use crate::AdamSettings;
use crate::backend::AdamCells;

pub(super) fn adam(
    settings: &AdamSettings,
    state: &AdamCells<'_, DfdxBackend>,
    gradients: &[Matrix],
) {
    let scale = settings.clip.map_or(1.0, |clip| clip_scale(clip, gradients));
    let mut step = 0.0;
    state.step.update(|count| {
        count[0] += 1.0;
        step = count[0];
    });
    let correction = |beta: f32| (1.0 - f64::from(beta).powf(f64::from(step))) as f32;
    let rule = Rule {
        scale,
        rate: rate(settings, step) / correction(settings.beta1),
        beta1: settings.beta1,
        beta2: settings.beta2,
        root: correction(settings.beta2).sqrt().recip(),
        epsilon: settings.epsilon,
    };
    for (index, gradient) in gradients.iter().enumerate() {
        state.parameters[index].update(|p| {
            state.first[index].update(|m| {
                state.second[index].update(|v| rule.apply(p, m, v, &gradient.values));
            });
        });
    }
}

/// The learning rate of the step with this number, the first of which is 1.
fn rate(settings: &AdamSettings, step: f32) -> f32 {
    let factor = settings.decay.factor(f64::from(step) - 1.0);
    (f64::from(settings.learning_rate) * factor) as f32
}

/// `min(1, clip / norm)` with the Euclidean norm of all gradients together.
fn clip_scale(clip: f32, gradients: &[Matrix]) -> f32 {
    let squares = gradients.iter().map(|gradient| {
        let chunks = gradient.values.par_chunks(parallel::CHUNK);
        chunks.map(sum_of_squares).collect::<Vec<_>>().into_iter().map(f64::from).sum::<f64>()
    });
    let norm = squares.sum::<f64>().sqrt() as f32;
    if norm > clip { clip / norm } else { 1.0 }
}

/// The numbers of one step of Adam.
struct Rule {
    scale: f32,
    /// The learning rate over the correction of the first moment.
    rate: f32,
    beta1: f32,
    beta2: f32,
    /// One over the root of the correction of the second moment.
    root: f32,
    epsilon: f32,
}

impl Rule {
    fn apply(&self, p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32]) {
        if p.len() < 4 * parallel::CHUNK {
            return adam_chunk(self, p, m, v, g);
        }
        let size = parallel::CHUNK;
        let moments = m.par_chunks_mut(size).zip(v.par_chunks_mut(size));
        let chunks = p.par_chunks_mut(size).zip(moments).zip(g.par_chunks(size));
        chunks.for_each(|((p, (m, v)), g)| adam_chunk(self, p, m, v, g));
    }
}

vectorised! {
    fn adam_chunk(rule: &Rule, p: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32]) {
        for (((p, m), v), g) in p.iter_mut().zip(m).zip(v).zip(g) {
            let g = squarable(rule.scale * g);
            *m = without_tiny(rule.beta1 * *m + (1.0 - rule.beta1) * g);
            *v = without_tiny(rule.beta2 * *v + (1.0 - rule.beta2) * g * g);
            *p -= rule.rate * *m / (v.sqrt() * rule.root + rule.epsilon);
        }
    }
}

vectorised! {
    fn sum_of_squares(x: &[f32]) -> f32 {
        reduce::sum_of(x, |x| squarable(x) * squarable(x))
    }
}

/// A gradient, or 0 if its square would be closer to 0 than [`without_tiny`] leaves anything.
#[inline(always)]
fn squarable(g: f32) -> f32 {
    if g.abs() < 1e-15 { 0.0 } else { g }
}

pub(super) fn sgd(learning_rate: f32, cells: &[Cell], gradients: &[Matrix]) {
    for (cell, gradient) in cells.iter().zip(gradients) {
        cell.update(|p| parallel::update(p, &gradient.values, |p, g| p - learning_rate * g));
    }
}

pub(super) fn blend(decay: f32, targets: &[Cell], sources: &[Cell]) {
    for (target, source) in targets.iter().zip(sources) {
        // Shared rather than borrowed, since a cell may be blended with itself.
        let source = source.inner.values.borrow().clone();
        target.update(|target| {
            parallel::update(target, &source, |target, source| {
                decay * target + (1.0 - decay) * source
            });
        });
    }
}
