//! Draws addressed by seed, step and stream; the step is counted on the device.

use cm_nn::{Distribution, Result, Shape};

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::Random;
use crate::launch::Use;
use crate::tensor::CudaTensor;

pub(crate) fn draw(
    backend: &CudaBackend,
    shape: Shape,
    distribution: Distribution,
    stream: u32,
) -> Result<CudaTensor> {
    let y = backend.new_tensor(shape)?;
    let is_normal = i32::from(distribution == Distribution::Normal);
    let (seeds, step) = (backend.seeds_argument(), backend.step_argument(Use::Read));
    let arguments = arguments![seeds, step, y.write(), y.count(), stream, is_normal];
    backend.each(Random, "draw", y.count().div_ceil(4), arguments)?;
    Ok(y)
}

pub(crate) fn categorical(
    backend: &CudaBackend,
    logits: &CudaTensor,
    stream: u32,
) -> Result<CudaTensor> {
    let [rows, columns] = logits.shape;
    let y = backend.new_tensor([rows, 1])?;
    let arguments = arguments![
        backend.seeds_argument(),
        backend.step_argument(Use::Read),
        logits.read(),
        y.write(),
        rows as u32,
        columns as u32,
        stream
    ];
    backend.warps(Random, "categorical", rows, arguments)?;
    Ok(y)
}

pub(crate) fn permutation(backend: &CudaBackend, n: usize, stream: u32) -> Result<CudaTensor> {
    let y = backend.new_tensor([n, 1])?;
    let (seeds, step) = (backend.seeds_argument(), backend.step_argument(Use::Read));
    let arguments = arguments![seeds, step, y.write(), n as u32, stream];
    backend.run(Random, "permutation", n.div_ceil(128) as u32, 128, 0, arguments)?;
    Ok(y)
}

/// Adds one to the step.
pub(crate) fn advance(backend: &CudaBackend) -> Result<()> {
    backend.run_once(Random, "advance", arguments![backend.step_argument(Use::Update)])
}
