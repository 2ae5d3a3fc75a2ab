//! Functions of two numbers, with repetition of single rows and columns.

use cm_nn::{Over, Reduce, Result, Shape, Zip};

use super::chain::Chain;
use super::reduce;
use crate::backend::CudaBackend;
use crate::tape::Slots;
use crate::tensor::CudaTensor;

pub(crate) fn zip(
    backend: &CudaBackend,
    x: &CudaTensor,
    y: &CudaTensor,
    f: Zip,
) -> Result<CudaTensor> {
    let shape = [x.shape[0].max(y.shape[0]), x.shape[1].max(y.shape[1])];
    let places = [backend.place(x), backend.place(y)];
    let z = Chain::load(x, shape).zip(f, y).run(backend)?;
    Ok(backend.record(z, &places, || {
        let (x, y) = (x.clone(), y.clone());
        move |backend: &CudaBackend, slots: &mut Slots, dz: CudaTensor| {
            // What follows the larger or smaller one is no chain mostly, so both come at once.
            if let (Zip::Max | Zip::Min, [Some(left), Some(right)]) = (f, places) {
                let first = backend.new_tensor(dz.shape)?;
                let chain = Chain::load(&dz, dz.shape).zip_gradients(f, [&x, &y], &first);
                let second = chain.run(backend)?;
                slots.add(left, sum_to(backend, x.shape, first)?);
                slots.add(right, sum_to(backend, y.shape, second)?);
                return Ok(());
            }
            for (side, input) in [&x, &y].into_iter().enumerate() {
                let Some(place) = places[side] else { continue };
                let gradient = gradient(backend, &dz, &x, &y, f, side)?;
                slots.add(place, sum_to(backend, input.shape, gradient)?);
            }
            Ok(())
        }
    }))
}

/// The gradient of the left (`side` 0) or right input, before repetitions are summed.
fn gradient(
    backend: &CudaBackend,
    dz: &CudaTensor,
    x: &CudaTensor,
    y: &CudaTensor,
    f: Zip,
    side: usize,
) -> Result<CudaTensor> {
    match (f, side) {
        (Zip::Add, _) | (Zip::Sub, 0) => return Ok(dz.clone()),
        _ => {}
    }
    Chain::load(dz, dz.shape).zip_gradient(f, side, [x, y]).run(backend)
}

/// Sums a gradient over the directions in which an input of shape `to` was repeated.
fn sum_to(backend: &CudaBackend, to: Shape, gradient: CudaTensor) -> Result<CudaTensor> {
    let over = match (to[0] != gradient.shape[0], to[1] != gradient.shape[1]) {
        (false, false) => return Ok(gradient),
        (true, false) => Over::Rows,
        (false, true) => Over::Columns,
        (true, true) => Over::All,
    };
    reduce::apply(backend, &gradient, over, Reduce::Sum)
}
