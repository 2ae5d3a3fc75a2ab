//! Quasimetric distances by cm-quasimetric's kernels.

use cm_quasimetric::{Error, Head, Reduction, Rows};
use dfdx::prelude::CpuError;

use super::{DfdxBackend, Matrix};
use crate::{Pairing, Result};

pub(super) fn quasimetric(
    backend: &DfdxBackend,
    head: Head,
    pairing: Pairing,
    x: &Matrix,
    y: &Matrix,
    logit: Option<&Matrix>,
) -> Result<Matrix> {
    let places = [backend.place(x), backend.place(y), logit.and_then(|logit| backend.place(logit))];
    let head = with_logit(head, logit);
    let shape = match pairing {
        Pairing::Rows => [x.shape[0], 1],
        Pairing::All => [x.shape[0], y.shape[0]],
    };
    let mut distances = backend.pool().take(shape[0] * shape[1]);
    let tracked = places.iter().any(Option::is_some);
    let mut recorded = None;
    match pairing {
        Pairing::Rows => head.rowwise(rows(x)?, rows(y)?, &mut distances)?,
        Pairing::All if tracked => {
            recorded = Some(head.pairwise_recorded(rows(x)?, rows(y)?, &mut distances)?);
        }
        Pairing::All => head.pairwise(rows(x)?, rows(y)?, &mut distances)?,
    }
    backend.record(shape, distances, &places.each_ref(), |_| {
        let (x, y, places) = (x.clone(), y.clone(), places.clone());
        move |slots, grad| {
            let mut dx = slots.take_or_zeros(&places[0], x.values.len())?;
            let mut dy = slots.take_or_zeros(&places[1], y.values.len())?;
            let gradients = || match recorded {
                None => head.rowwise_backward(rows(&x)?, rows(&y)?, &grad, &mut dx, &mut dy),
                Some(recorded) => recorded.backward(rows(&x)?, rows(&y)?, &grad, &mut dx, &mut dy),
            };
            // The forward pass accepted the same shapes.
            let d_logit = gradients().map_err(|_| CpuError::WrongNumElements)?;
            slots.pool().give(grad);
            for (place, gradient) in places.iter().zip([dx, dy, vec![d_logit]]) {
                match place {
                    Some(place) => slots.add(place, gradient)?,
                    None => slots.pool().give(gradient),
                }
            }
            Ok(())
        }
    })
}

/// The head with its logit replaced by a learned one.
fn with_logit(head: Head, logit: Option<&Matrix>) -> Head {
    match (head, logit) {
        (Head::Iqe { groups, .. }, Some(logit)) => {
            let logit = f64::from(logit.values[0]);
            Head::Iqe { groups, reduction: Reduction::MaxMean { logit } }
        }
        _ => head,
    }
}

fn rows(x: &Matrix) -> Result<Rows<'_, f32>, Error> {
    Rows::new(&x.values, x.shape[0], x.shape[1])
}
