//! Constants, `scale x + shift`, functions of one number, and sums of gradients.

use cm_nn::{Activation, Map, Result, Shape, Zip};

use super::arguments;
use super::chain::Chain;
use crate::backend::CudaBackend;
use crate::compile::Module::Elementwise;
use crate::launch::Argument;
use crate::tensor::CudaTensor;

/// A matrix of one value, made on the device.
pub(crate) fn fill(backend: &CudaBackend, shape: Shape, value: f32) -> Result<CudaTensor> {
    let y = backend.new_tensor(shape)?;
    backend.each(Elementwise, "fill", y.count(), arguments![y.write(), y.count(), value])?;
    Ok(y)
}

pub(crate) fn affine(
    backend: &CudaBackend,
    x: &CudaTensor,
    scale: f32,
    shift: f32,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let y = apply_affine(backend, x, scale, shift)?;
    Ok(backend.record(y, &[place], || {
        move |backend: &CudaBackend, slots: &mut crate::tape::Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            slots.add(place, apply_affine(backend, &dy, scale, 0.0)?);
            Ok(())
        }
    }))
}

fn apply_affine(
    backend: &CudaBackend,
    x: &CudaTensor,
    scale: f32,
    shift: f32,
) -> Result<CudaTensor> {
    Chain::load(x, x.shape).affine(scale, shift).run(backend)
}

pub(crate) fn map(backend: &CudaBackend, x: &CudaTensor, f: Map) -> Result<CudaTensor> {
    let place = backend.place(x);
    let (code, bounds) = code_of(f)?;
    let y = Chain::load(x, x.shape).map(code, bounds).run(backend)?;
    Ok(backend.record(y, &[place], || {
        let x = x.clone();
        move |backend: &CudaBackend, slots: &mut crate::tape::Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = Chain::load(&dy, x.shape).map_gradient(code, bounds, &x);
            slots.add(place, dx.run(backend)?);
            Ok(())
        }
    }))
}

/// The number of an activation in `functions.cuh`.
pub(crate) fn activation_code(activation: Activation) -> i32 {
    match activation {
        Activation::Identity => 0,
        Activation::Relu => 1,
        Activation::Silu => 2,
        Activation::Gelu => 3,
        Activation::Tanh => 4,
    }
}

/// The number of a function in `functions.cuh`, and its bounds if it has any.
fn code_of(f: Map) -> Result<(i32, [f32; 2])> {
    let code = match f {
        Map::Activation(activation) => activation_code(activation),
        Map::Sigmoid => 5,
        Map::Softplus => 6,
        Map::Exp => 7,
        Map::Log => 8,
        Map::Square => 9,
        Map::Sqrt => 10,
        Map::Abs => 11,
        Map::Step => 12,
        Map::Clamp { low, high } => return Ok((13, [low, high])),
        other => {
            return Err(cm_nn::Error::Setting {
                setting: "function".into(),
                expected: "one that the CUDA backend has",
                found: format!("{other:?}"),
            });
        }
    };
    Ok((code, [0.0; 2]))
}

/// A matrix whose elements are added to a sum from element `start` on.
pub(crate) struct Part {
    pub(crate) tensor: CudaTensor,
    pub(crate) start: usize,
}

/// How many parts one kernel adds.
const MOST_PARTS: usize = 8;
/// Sums of matrices of at most as many numbers are chains: larger ones are faster four at a time.
pub(crate) const MOST_CHAINED: usize = 1 << 16;
/// Bytes of `struct Parts`.
const PARTS_SIZE: usize = MOST_PARTS * 24;

/// The sum of the parts, zero where there are none, times `factor` if it is given.
pub(crate) fn add_parts(
    backend: &CudaBackend,
    shape: Shape,
    mut parts: Vec<Part>,
    factor: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    let count = shape[0] * shape[1];
    if let ([part], None) = (&parts[..], factor)
        && part.tensor.shape == shape
    {
        return Ok(part.tensor.clone());
    }
    while parts.len() > MOST_PARTS {
        let rest = parts.split_off(MOST_PARTS);
        let sum = add_parts(backend, shape, parts, None)?;
        parts = vec![Part { tensor: sum, start: 0 }];
        parts.extend(rest);
    }
    if let [first, others @ ..] = &parts[..]
        && count <= MOST_CHAINED
        && parts.iter().all(|part| part.tensor.shape == shape)
    {
        let sum = others
            .iter()
            .fold(Chain::load(&first.tensor, shape), |sum, part| sum.zip(Zip::Add, &part.tensor));
        let product = factor.into_iter().fold(sum, |sum, factor| sum.zip(Zip::Mul, factor));
        return product.run(backend);
    }
    let y = backend.new_tensor(shape)?;
    let is_quads = |size: usize| size.is_multiple_of(4);
    let wide = is_quads(count)
        && factor.is_none_or(|factor| is_quads(factor.view.offset))
        && parts.iter().all(|Part { tensor, start }| {
            [*start, tensor.view.offset, tensor.count() as usize].into_iter().all(is_quads)
        });
    let members = parts.iter().flat_map(|Part { tensor, start }| {
        let end = *start as u32 + tensor.count();
        [tensor.read(), Argument::Unsigned(*start as u32), Argument::Unsigned(end)]
    });
    let table = Argument::Struct(members.collect(), PARTS_SIZE);
    let arguments = arguments![
        y.write(),
        table,
        crate::tensor::maybe_read(factor),
        parts.len() as u32,
        count as u32,
        i32::from(wide)
    ];
    let threads = if wide { count / 4 } else { count };
    backend.each(Elementwise, "add_parts", threads as u32, arguments)?;
    Ok(y)
}
