//! MRN and Max: Euclidean distances and largest differences, by rows and by pairs.

use cm_nn::{Pairing, Result, Shape};

use super::arguments;
use super::residual_gradient::{self, Pairs};
use crate::backend::CudaBackend;
use crate::compile::Module::{Residual, ResidualPairs};
use crate::launch::Argument;
use crate::tape::{Place, Slots};
use crate::tensor::{CudaTensor, maybe_write};

/// Where the kernels of pairs have their arguments that are looked at.
pub(crate) mod pairs {
    pub(crate) const DISTANCES: usize = 2;
    pub(crate) const ROWS: usize = 5;
    pub(crate) const COLUMNS: usize = 6;
    /// Log-sum-exps of logits to make besides.
    pub(crate) const SUMS: usize = 9;
    /// Bytes of `struct Sums`.
    pub(crate) const SUMS_BYTES: usize = 56;
}

/// How the features are divided: each component has `symmetric` features, then `asymmetric` ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) components: usize,
    pub(crate) symmetric: usize,
    pub(crate) asymmetric: usize,
    /// What each squared norm is raised by.
    pub(crate) offset: f32,
}

impl Split {
    pub(crate) fn share(self) -> f32 {
        (1.0 / self.components as f64) as f32
    }

    /// `struct Split` of the kernels.
    pub(crate) fn argument(self) -> Argument {
        let members = [self.components, self.symmetric, self.asymmetric];
        let mut members = members.map(|size| Argument::Unsigned(size as u32)).to_vec();
        members.extend([Argument::Float(self.offset), Argument::Float(self.share())]);
        Argument::Struct(members, 20)
    }
}

pub(crate) fn distances(
    backend: &CudaBackend,
    split: Split,
    pairing: Pairing,
    x: &CudaTensor,
    y: &CudaTensor,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(y)];
    match pairing {
        Pairing::Rows => by_rows(backend, split, x, y, places),
        Pairing::All => by_pairs(backend, split, x, y, places),
    }
}

fn by_rows(
    backend: &CudaBackend,
    split: Split,
    x: &CudaTensor,
    y: &CudaTensor,
    places: [Option<Place>; 2],
) -> Result<CudaTensor> {
    let n = x.shape[0];
    let result = backend.new_tensor([n, 1])?;
    let arguments = arguments![x.read(), y.read(), result.write(), n as u32, split.argument()];
    backend.warps(Residual, "residual_rows", n, arguments)?;
    Ok(backend.record(result, &places, || {
        let (x, y) = (x.clone(), y.clone());
        move |backend: &CudaBackend, slots: &mut Slots, grad: CudaTensor| {
            let gradient =
                |place: Option<Place>| place.map(|_| backend.new_tensor(x.shape)).transpose();
            let gradients = [gradient(places[0])?, gradient(places[1])?];
            let arguments = arguments![
                x.read(),
                y.read(),
                grad.read(),
                maybe_write(gradients[0].as_ref()),
                maybe_write(gradients[1].as_ref()),
                n as u32,
                split.argument()
            ];
            backend.warps(Residual, "residual_rows_gradient", n, arguments)?;
            for (place, gradient) in places.into_iter().zip(gradients) {
                if let (Some(place), Some(gradient)) = (place, gradient) {
                    slots.add(place, gradient);
                }
            }
            Ok(())
        }
    }))
}

fn by_pairs(
    backend: &CudaBackend,
    split: Split,
    x: &CudaTensor,
    y: &CudaTensor,
    places: [Option<Place>; 2],
) -> Result<CudaTensor> {
    let (n, m) = (x.shape[0], y.shape[0]);
    let result = backend.new_tensor([n, m])?;
    // What the gradients need to know of each pair.
    let is_tracked = places.iter().any(Option::is_some);
    let each =
        |wanted: bool| wanted.then(|| backend.new_tensor([split.components * n, m])).transpose();
    let (norms, args) = (each(is_tracked && split.symmetric > 0)?, each(is_tracked)?);
    let by_products = residual_gradient::by_products(backend, split);
    let arguments = arguments![
        x.read(),
        y.read(),
        result.write(),
        maybe_write(norms.as_ref()),
        maybe_write(args.as_ref()),
        n as u32,
        m as u32,
        u32::from(!by_products),
        split.argument(),
        Argument::Struct(Vec::new(), pairs::SUMS_BYTES)
    ];
    // As `residual_pairs.cu` has them; all have the same results.
    let [small, large] = [[32, 16], [64, 32]];
    let tiles = |[rows, columns]: Shape| n.div_ceil(rows) * m.div_ceil(columns);
    let is_large = tiles(large) * backend.replicas() >= 128;
    let is_short = split.symmetric.max(split.asymmetric) <= 32;
    // Chunks of 32 features of so many tiles, and totals, are in shared memory.
    let (kernel, tile, chunks, totals) = match (is_large, is_short) {
        (true, true) => ("residual_pairs_large_short", large, 4, 2),
        (true, false) => ("residual_pairs_large", large, 4, 2),
        (false, true) => ("residual_pairs_small_short", small, 8, 0),
        (false, false) => ("residual_pairs_small", small, 16, 0),
    };
    let shared = 4 * (chunks * (tile[0] + tile[1]) * 32 + totals * tile[0] * tile[1]);
    backend.run(ResidualPairs, kernel, tiles(tile) as u32, 256, shared as u32, arguments)?;
    Ok(backend.record(result, &places, || {
        let (x, y) = (x.clone(), y.clone());
        move |backend: &CudaBackend, slots: &mut Slots, grad: CudaTensor| {
            let Some(args) = args else { return Ok(()) };
            let pairs = Pairs { split, x, y, grad, norms, args };
            let wanted = places.map(|place| place.is_some());
            for (place, gradient) in places.into_iter().zip(pairs.gradients(backend, wanted)?) {
                if let (Some(place), Some(gradient)) = (place, gradient) {
                    slots.add(place, gradient);
                }
            }
            Ok(())
        }
    }))
}
