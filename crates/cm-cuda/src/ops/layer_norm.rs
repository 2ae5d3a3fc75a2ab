//! Layer normalisation, and rows of length 1.

use std::ops::RangeInclusive;
use std::rc::Rc;

use cm_nn::Result;

use super::arguments;
use super::reduce::column_sums;
use crate::backend::CudaBackend;
use crate::compile::Module::LayerNorm;
use crate::launch::{Argument, Launch};
use crate::tape::Slots;
use crate::tensor::CudaTensor;

/// Columns of rows that a warp keeps in registers, as `layer_norm.cu` can: narrower ones are as
/// fast without.
const HELD: RangeInclusive<usize> = 257..=512;

pub(crate) fn layer_norm(
    backend: &CudaBackend,
    x: &CudaTensor,
    gain: &CudaTensor,
    bias: &CudaTensor,
    epsilon: f32,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(gain), backend.place(bias)];
    let [rows, columns] = x.shape;
    let (y, normal) = (backend.new_tensor(x.shape)?, backend.new_tensor(x.shape)?);
    let deviation = backend.new_tensor([rows, 1])?;
    let arguments = arguments![
        x.read(),
        gain.read(),
        bias.read(),
        normal.write(),
        deviation.write(),
        y.write(),
        rows as u32,
        columns as u32,
        epsilon
    ];
    let is_held = HELD.contains(&columns);
    let kernel = if is_held { "layer_norm_held" } else { "layer_norm" };
    backend.warps(LayerNorm, kernel, rows, arguments)?;
    Ok(backend.record(y, &places, || {
        let gain = gain.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let [x_place, gain_place, bias_place] = places;
            if let Some(place) = bias_place {
                slots.add(place, column_sums(backend, &dy, None)?);
            }
            if let Some(place) = gain_place {
                slots.add(place, column_sums(backend, &dy, Some(&normal))?);
            }
            let Some(place) = x_place else { return Ok(()) };
            let dx = backend.new_tensor(dy.shape)?;
            let arguments = arguments![
                dy.read(),
                gain.read(),
                normal.read(),
                deviation.read(),
                dx.write(),
                rows as u32,
                columns as u32
            ];
            let kernel = if is_held { "layer_norm_gradient_held" } else { "layer_norm_gradient" };
            backend.warps(LayerNorm, kernel, rows, arguments)?;
            slots.add(place, dx);
            Ok(())
        }
    }))
}

/// Rows divided by their lengths.
pub(crate) fn l2_normalize(
    backend: &CudaBackend,
    x: &CudaTensor,
    epsilon: f32,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let [rows, columns] = x.shape;
    let y = backend.new_tensor(x.shape)?;
    if !goes_on(backend, x, &y, epsilon) {
        let mut arguments = arguments![x.read(), y.write(), Argument::Nothing];
        arguments.extend(arguments![rows as u32, columns as u32, epsilon, 0.0_f32]);
        backend.warps(LayerNorm, "l2_normalize", rows, arguments)?;
    }
    Ok(backend.record(y, &[place], || {
        let x = x.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = backend.new_tensor(x.shape)?;
            if !goes_on_back(backend, &x, &dy, &dx, epsilon) {
                let mut arguments = arguments![x.read(), dy.read(), dx.write(), Argument::Nothing];
                arguments.extend(arguments![rows as u32, columns as u32, epsilon, 0.0_f32]);
                backend.warps(LayerNorm, "l2_normalize_gradient", rows, arguments)?;
            }
            slots.add(place, dx);
            Ok(())
        }
    }))
}

/// Where `l2_normalize` and its gradient have their arguments that are looked at.
mod normalize {
    pub(super) const RESULT: usize = 1;
    pub(super) const NEXT: usize = 2;
    pub(super) const NEXT_EPSILON: usize = 6;
}

mod normalize_gradient {
    pub(super) const RESULT: usize = 2;
    pub(super) const BEFORE: usize = 3;
    pub(super) const EPSILON_BEFORE: usize = 7;
}

/// If `x` was recorded as rows divided by their lengths, as actions of length 1 are that become
/// features: lets that kernel divide them once more.
fn goes_on(backend: &CudaBackend, x: &CudaTensor, y: &CudaTensor, epsilon: f32) -> bool {
    use normalize::{NEXT, NEXT_EPSILON, RESULT};
    let mut recorder = backend.recorder().borrow_mut();
    let Some(recorder) = recorder.as_mut() else { return false };
    let Some(maker) = recorder.last_writer(x) else { return false };
    let launch = &mut recorder.launches[maker];
    if launch.kernel != "l2_normalize" || !launch.has(RESULT, NEXT, x) {
        return false;
    }
    launch.arguments[NEXT] = y.write();
    launch.arguments[NEXT_EPSILON] = epsilon.into();
    true
}

/// The same for the gradient `dy` of what `x` became, if nobody else needs it.
fn goes_on_back(
    backend: &CudaBackend,
    x: &CudaTensor,
    dy: &CudaTensor,
    dx: &CudaTensor,
    epsilon: f32,
) -> bool {
    use normalize_gradient::{BEFORE, EPSILON_BEFORE, RESULT};
    let mut recorder = backend.recorder().borrow_mut();
    let Some(recorder) = recorder.as_mut() else { return false };
    let Some(maker) = recorder.last_writer(dy) else { return false };
    let is_there = recorder.last_writer(x).is_none_or(|writer| writer < maker);
    let launch = &mut recorder.launches[maker];
    // The kernel and `dy` have it.
    let is_ours = !dy.view.buffer.is_placed() && Rc::strong_count(&dy.view.buffer) == 2;
    let is_gradient = launch.kernel == "l2_normalize_gradient" && launch.has(RESULT, BEFORE, dy);
    if !is_there || !is_ours || !is_gradient {
        return false;
    }
    launch.arguments[RESULT] = dx.write();
    launch.arguments[BEFORE] = x.read();
    launch.arguments[EPSILON_BEFORE] = epsilon.into();
    true
}

impl Launch {
    /// Whether the result at `result` is all of `x`, and there is nothing at `next`, of kernels
    /// whose rows and columns follow their matrices.
    fn has(&self, result: usize, next: usize, x: &CudaTensor) -> bool {
        let is_x = match &self.arguments[result] {
            Argument::Matrix(view, _) => {
                view.buffer.number() == x.view.buffer.number() && view.offset == x.view.offset
            }
            _ => false,
        };
        let mut sizes = self.arguments.iter().filter_map(Argument::unsigned);
        let is_whole = x.shape.iter().all(|&size| sizes.next() == Some(size as u32));
        is_x && is_whole && matches!(self.arguments[next], Argument::Nothing)
    }
}
