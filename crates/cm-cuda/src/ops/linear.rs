//! `f(x w + b)` in one kernel, and its gradients.

use cm_nn::{Activation, Result};

use super::product::{Finish, Kind, Product};
use super::reduce::column_sums;
use crate::backend::CudaBackend;
use crate::tape::Slots;
use crate::tensor::CudaTensor;

pub(crate) fn linear(
    backend: &CudaBackend,
    x: &CudaTensor,
    w: &CudaTensor,
    b: Option<&CudaTensor>,
    activation: Activation,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(w), b.and_then(|b| backend.place(b))];
    let is_tracked = places.iter().any(Option::is_some);
    let shape = [x.shape[0], w.shape[1]];
    let slope = match activation {
        Activation::Identity => None,
        _ if is_tracked => Some(backend.new_tensor(shape)?),
        _ => None,
    };
    let finish = Finish { bias: b, activation, slope: slope.as_ref(), ..Finish::NONE };
    let y = Product::new(x, w, Kind::Plain).run(backend, &finish)?;
    Ok(backend.record_place(y, &places, |place| {
        let (x, w) = (x.clone(), w.clone());
        move |backend: &CudaBackend, slots: &mut Slots| {
            let Some(dz) = slots.take_operand(backend, place, shape, slope.as_ref())? else {
                return Ok(());
            };
            let [x_place, w_place, b_place] = places;
            let mut to_w = Product::new(&x, &dz, Kind::Left);
            match b_place {
                Some(place) if Product::can_sum(backend) => {
                    let wanted = w_place.filter(|&w| slots.are_wanted([w, place]));
                    let before = wanted.and_then(|w| slots.take_sums(w, place));
                    slots.add(place, to_w.sum_columns(backend, before)?);
                    if wanted.is_none() {
                        // The product may come too late, or never.
                        Product::sum_up(backend, std::slice::from_ref(&to_w), None, None)?;
                    }
                }
                Some(place) => slots.add(place, column_sums(backend, &dz, None)?),
                None => {}
            }
            if let Some(place) = w_place {
                slots.add_product(place, to_w);
            }
            if let Some(place) = x_place {
                slots.add_product(place, Product::new(&dz, &w, Kind::Right));
            }
            Ok(())
        }
    }))
}
