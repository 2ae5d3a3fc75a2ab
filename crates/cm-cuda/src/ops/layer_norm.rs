//! Layer normalisation, and rows of length 1.

use std::ops::RangeInclusive;

use cm_nn::Result;

use super::arguments;
use super::reduce::column_sums;
use crate::backend::CudaBackend;
use crate::compile::Module::LayerNorm;
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
    let arguments = arguments![x.read(), y.write(), rows as u32, columns as u32, epsilon];
    backend.warps(LayerNorm, "l2_normalize", rows, arguments)?;
    Ok(backend.record(y, &[place], || {
        let x = x.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = backend.new_tensor(x.shape)?;
            let sizes = arguments![rows as u32, columns as u32, epsilon];
            let arguments = [arguments![x.read(), dy.read(), dx.write()], sizes].concat();
            backend.warps(LayerNorm, "l2_normalize_gradient", rows, arguments)?;
            slots.add(place, dx);
            Ok(())
        }
    }))
}
