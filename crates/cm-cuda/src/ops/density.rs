//! Log-density of a normal distribution squashed by tanh.

use cm_nn::Result;

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::Density;
use crate::tape::Slots;
use crate::tensor::{CudaTensor, maybe_write};

pub(crate) fn tanh_normal_log_density(
    backend: &CudaBackend,
    mean: &CudaTensor,
    scale: &CudaTensor,
    action: &CudaTensor,
) -> Result<CudaTensor> {
    let inputs = [mean, scale, action];
    let places = inputs.map(|input| backend.place(input));
    let [rows, columns] = mean.shape;
    let y = backend.new_tensor([rows, 1])?;
    let arguments = arguments![
        mean.read(),
        scale.read(),
        action.read(),
        y.write(),
        rows as u32,
        columns as u32
    ];
    backend.each(Density, "density", rows as u32, arguments)?;
    Ok(backend.record(y, &places, || {
        let inputs = inputs.map(CudaTensor::clone);
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let gradient = |wanted: bool| wanted.then(|| backend.new_tensor([rows, columns]));
            let gradients = places.map(|place| gradient(place.is_some()));
            let [d_mean, d_scale, d_action] = gradients.map(Option::transpose);
            let gradients = [d_mean?, d_scale?, d_action?];
            let [mean, scale, action] = &inputs;
            let [d_mean, d_scale, d_action] = gradients.each_ref();
            let arguments = arguments![
                mean.read(),
                scale.read(),
                action.read(),
                dy.read(),
                maybe_write(d_mean.as_ref()),
                maybe_write(d_scale.as_ref()),
                maybe_write(d_action.as_ref()),
                columns as u32,
                mean.count()
            ];
            backend.each(Density, "density_gradient", mean.count(), arguments)?;
            for (place, gradient) in places.into_iter().zip(gradients) {
                if let (Some(place), Some(gradient)) = (place, gradient) {
                    slots.add(place, gradient);
                }
            }
            Ok(())
        }
    }))
}
