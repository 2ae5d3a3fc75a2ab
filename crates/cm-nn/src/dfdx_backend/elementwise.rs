//! `scale x + shift` and functions of one number.

use std::f32::consts::FRAC_2_PI;

use super::math::{exp, sigmoid, silu_gate, softplus, tanh};
use super::{DfdxBackend, Matrix, parallel};
use crate::{Activation, Map, Result};

pub(super) fn affine(backend: &DfdxBackend, x: &Matrix, scale: f32, shift: f32) -> Result<Matrix> {
    let place = backend.place(x);
    let mut y = backend.pool().take(x.values.len());
    parallel::map(&mut y, &x.values, |x| scale * x + shift);
    backend.record(x.shape, y, &[&place.clone()], |_| {
        move |slots, mut dy| {
            let Some(place) = place else { return Ok(()) };
            parallel::map_in_place(&mut dy, |dy| dy * scale);
            slots.add(&place, dy)
        }
    })
}

pub(super) fn map(backend: &DfdxBackend, x: &Matrix, f: Map) -> Result<Matrix> {
    let place = backend.place(x);
    let mut y = backend.pool().take(x.values.len());
    apply(f, &mut y, &x.values);
    backend.record(x.shape, y, &[&place.clone()], |_| {
        let x = x.values.clone();
        move |slots, mut dy| {
            let Some(place) = place else { return Ok(()) };
            apply_derivative(f, &mut dy, &x);
            slots.add(&place, dy)
        }
    })
}

/// `y = f(x)`.
pub(super) fn apply(f: Map, y: &mut [f32], x: &[f32]) {
    match f {
        Map::Activation(Activation::Identity) => y.copy_from_slice(x),
        Map::Activation(Activation::Relu) => parallel::map(y, x, relu),
        Map::Activation(Activation::Silu) => parallel::map(y, x, silu),
        Map::Activation(Activation::Gelu) => parallel::map(y, x, gelu),
        Map::Activation(Activation::Tanh) => parallel::map(y, x, tanh),
        Map::Sigmoid => parallel::map(y, x, sigmoid),
        Map::Softplus => parallel::map(y, x, softplus),
        Map::Exp => parallel::map(y, x, exp),
        Map::Log => parallel::map(y, x, f32::ln),
        Map::Square => parallel::map(y, x, |x| x * x),
        Map::Sqrt => parallel::map(y, x, f32::sqrt),
        Map::Abs => parallel::map(y, x, f32::abs),
        Map::Step => parallel::map(y, x, |x| f32::from(x > 0.0)),
        Map::Clamp { low, high } => parallel::map(y, x, |x| x.clamp(low, high)),
    }
}

/// `dy *= f'(x)`.
fn apply_derivative(f: Map, dy: &mut [f32], x: &[f32]) {
    match f {
        Map::Activation(activation) => activation_gradient(activation, dy, x),
        Map::Sigmoid => parallel::update(dy, x, |dy, x| {
            let y = sigmoid(x);
            dy * y * (1.0 - y)
        }),
        Map::Softplus => parallel::update(dy, x, |dy, x| dy * sigmoid(x)),
        Map::Exp => parallel::update(dy, x, |dy, x| dy * exp(x)),
        Map::Log => parallel::update(dy, x, |dy, x| dy / x),
        Map::Square => parallel::update(dy, x, |dy, x| 2.0 * dy * x),
        Map::Sqrt => {
            parallel::update(dy, x, |dy, x| if x == 0.0 { 0.0 } else { 0.5 * dy / x.sqrt() });
        }
        Map::Abs => parallel::update(dy, x, |dy, x| if x == 0.0 { 0.0 } else { dy * x.signum() }),
        Map::Step => dy.fill(0.0),
        Map::Clamp { low, high } => {
            parallel::update(dy, x, |dy, x| if x >= low && x <= high { dy } else { 0.0 });
        }
    }
}

/// `dz = dy f'(z)` in place, from the input `z` of the activation.
pub(super) fn activation_gradient(activation: Activation, dy: &mut [f32], z: &[f32]) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => parallel::update(dy, z, |dy, z| if z > 0.0 { dy } else { 0.0 }),
        Activation::Silu => parallel::update(dy, z, |dy, z| dy * silu_slope(z)),
        Activation::Gelu => parallel::update(dy, z, |dy, z| dy * gelu_slope(z)),
        Activation::Tanh => parallel::update(dy, z, |dy, z| {
            let y = tanh(z);
            dy * (1.0 - y * y)
        }),
    }
}

/// `x += y`.
pub(super) fn add_assign(x: &mut [f32], y: &[f32]) {
    parallel::update(x, y, |x, y| x + y);
}

#[inline(always)]
pub(super) fn relu(x: f32) -> f32 {
    // A NaN stays one, which `f32::max` would not let it.
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
pub(super) fn silu(x: f32) -> f32 {
    x * silu_gate(x)
}

#[inline(always)]
fn silu_slope(x: f32) -> f32 {
    let s = silu_gate(x);
    s * (1.0 + x * (1.0 - s))
}

const CUBIC: f32 = 0.044_715;

#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + tanh(FRAC_2_PI.sqrt() * (x + CUBIC * x * x * x)))
}

#[inline(always)]
fn gelu_slope(x: f32) -> f32 {
    let t = tanh(FRAC_2_PI.sqrt() * (x + CUBIC * x * x * x));
    let inner = FRAC_2_PI.sqrt() * (1.0 + 3.0 * CUBIC * x * x);
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner
}
