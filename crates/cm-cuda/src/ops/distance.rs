//! Quasimetric distances: which kernels a head needs.

use cm_nn::{Error, Pairing, Result};
use cm_quasimetric::{Head, Reduction, Rows};

use super::iqe::{self, Groups};
use super::residual::{self, Split};
use crate::backend::CudaBackend;
use crate::tensor::CudaTensor;

pub(crate) fn quasimetric(
    backend: &CudaBackend,
    head: Head,
    pairing: Pairing,
    x: &CudaTensor,
    y: &CudaTensor,
    logit: Option<&CudaTensor>,
) -> Result<CudaTensor> {
    match kernels(head, pairing, x, y)? {
        Kernels::Residual(split) => residual::distances(backend, split, pairing, x, y),
        Kernels::Iqe(groups) => iqe::distances(backend, groups, pairing, x, y, logit),
    }
}

/// A head whose settings fit the shapes.
enum Kernels {
    Residual(Split),
    Iqe(Groups),
}

fn kernels(head: Head, pairing: Pairing, x: &CudaTensor, y: &CudaTensor) -> Result<Kernels> {
    check(head, pairing, x, y)?;
    let width = x.shape[1];
    Ok(match head {
        Head::Mrn { components, epsilon } => {
            let half = width / components / 2;
            let offset = (epsilon * half as f64) as f32;
            Kernels::Residual(Split { components, symmetric: half, asymmetric: half, offset })
        }
        Head::Max => {
            Kernels::Residual(Split { components: 1, symmetric: 0, asymmetric: width, offset: 0.0 })
        }
        Head::Iqe { groups, reduction } => Kernels::Iqe(reduced(groups, width, reduction)?),
        other => return Err(unknown(other.to_string())),
    })
}

fn reduced(count: usize, width: usize, reduction: Reduction) -> Result<Groups> {
    let (total_weight, maximum_weight, kind) = match reduction {
        Reduction::Sum => (1.0, 0.0, 0),
        Reduction::Mean => (1.0 / count as f64, 0.0, 0),
        Reduction::Max => (0.0, 1.0, 1),
        Reduction::MaxMean { logit } => {
            let share = 1.0 / (1.0 + (-logit).exp());
            ((1.0 - share) / count as f64, share, 2)
        }
        other => return Err(unknown(format!("{other:?}"))),
    };
    let (total_weight, maximum_weight) = (total_weight as f32, maximum_weight as f32);
    Ok(Groups { count, size: width / count, total_weight, maximum_weight, kind })
}

fn unknown(found: String) -> Error {
    Error::Setting { setting: "head".into(), expected: "one that the CUDA backend has", found }
}

/// Refuses what cm-quasimetric refuses, with its errors.
fn check(head: Head, pairing: Pairing, x: &CudaTensor, y: &CudaTensor) -> Result<()> {
    let refused = |n: usize, m: usize| {
        let (left, right) = (vec![0.0_f32; n * x.shape[1]], vec![0.0_f32; m * y.shape[1]]);
        let (left, right) = (Rows::new(&left, n, x.shape[1])?, Rows::new(&right, m, y.shape[1])?);
        match pairing {
            Pairing::Rows => head.rowwise(left, right, &mut vec![0.0; n]),
            Pairing::All => head.pairwise(left, right, &mut vec![0.0; n * m]),
        }
    };
    if refused(1, 1).is_err() {
        // Once more, for a message with the shapes that were given.
        refused(x.shape[0], y.shape[0])?;
    }
    Ok(())
}
