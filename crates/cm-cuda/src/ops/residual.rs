//! MRN and Max: Euclidean distances and largest differences, by rows and by pairs.

use cm_nn::{Pairing, Result};

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::Residual;
use crate::launch::Argument;
use crate::tape::{Place, Slots};
use crate::tensor::{CudaTensor, maybe_write};

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
    fn share(self) -> f32 {
        (1.0 / self.components as f64) as f32
    }

    /// `struct Split` of the kernels.
    fn argument(self) -> Argument {
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

/// Side of the tiles of pairs.
const TILE: usize = 32;

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
    let arguments = arguments![
        x.read(),
        y.read(),
        result.write(),
        maybe_write(norms.as_ref()),
        maybe_write(args.as_ref()),
        n as u32,
        m as u32,
        split.argument()
    ];
    let blocks = (n.div_ceil(TILE) * m.div_ceil(TILE)) as u32;
    backend.run(Residual, "residual_pairs", blocks, 256, 0, arguments)?;
    Ok(backend.record(result, &places, || {
        let (x, y) = (x.clone(), y.clone());
        move |backend: &CudaBackend, slots: &mut Slots, grad: CudaTensor| {
            let Some(args) = args else { return Ok(()) };
            let pairs = Pairs::new(backend, split, &x, &y, grad, norms.as_ref(), args)?;
            if let Some(place) = places[0] {
                slots.add(place, pairs.gradient(backend, &x, &y, false)?);
            }
            if let Some(place) = places[1] {
                slots.add(place, pairs.gradient(backend, &y, &x, true)?);
            }
            Ok(())
        }
    }))
}

/// What each pair weighs in the gradients, as it lies for `x` and as it lies for `y`.
struct Pairs {
    split: Split,
    weights: [Option<CudaTensor>; 2],
    scales: [Option<CudaTensor>; 2],
    grads: [CudaTensor; 2],
    args: [CudaTensor; 2],
}

impl Pairs {
    fn new(
        backend: &CudaBackend,
        split: Split,
        x: &CudaTensor,
        y: &CudaTensor,
        grad: CudaTensor,
        norms: Option<&CudaTensor>,
        args: CudaTensor,
    ) -> Result<Self> {
        let (n, m) = (x.shape[0], y.shape[0]);
        let each =
            |rows: usize, columns: usize| backend.new_tensor([split.components * rows, columns]);
        let both = || match norms {
            Some(_) => Ok([Some(each(n, m)?), Some(each(m, n)?)]),
            None => Ok::<_, cm_nn::Error>([None, None]),
        };
        let (weights, scales) = (both()?, both()?);
        let (grads_t, args_t) = (each(m, n)?, each(m, n)?);
        let arguments = arguments![
            x.read(),
            y.read(),
            grad.read(),
            crate::tensor::maybe_read(norms),
            args.read(),
            maybe_write(weights[0].as_ref()),
            maybe_write(weights[1].as_ref()),
            maybe_write(scales[0].as_ref()),
            maybe_write(scales[1].as_ref()),
            grads_t.write(),
            args_t.write(),
            n as u32,
            m as u32,
            split.argument()
        ];
        let blocks = (split.components * n.div_ceil(TILE) * m.div_ceil(TILE)) as u32;
        backend.run(Residual, "residual_weights", blocks, 256, 0, arguments)?;
        Ok(Self { split, weights, scales, grads: [grad, grads_t], args: [args, args_t] })
    }

    /// The gradient of `a`, paired with `b`; `a` is `y` if `is_right`.
    fn gradient(
        &self,
        backend: &CudaBackend,
        a: &CudaTensor,
        b: &CudaTensor,
        is_right: bool,
    ) -> Result<CudaTensor> {
        let (side, split) = (usize::from(is_right), self.split);
        let (n, m) = (a.shape[0], b.shape[0]);
        let da = backend.new_tensor(a.shape)?;
        if let (Some(weights), Some(scales)) = (&self.weights[side], &self.scales[side]) {
            let arguments = arguments![
                a.read(),
                b.read(),
                weights.read(),
                scales.read(),
                da.update(),
                n as u32,
                m as u32,
                split.argument()
            ];
            let tiles = n.div_ceil(TILE) * split.symmetric.div_ceil(TILE);
            let blocks = (split.components * tiles) as u32;
            backend.run(Residual, "residual_norm_gradient", blocks, 256, 0, arguments)?;
        }
        // The transposed gradients have their share already.
        let (scale, per_component) = if is_right { (-1.0, 1) } else { (split.share(), 0) };
        let arguments = arguments![
            self.grads[side].read(),
            self.args[side].read(),
            da.update(),
            m as u32,
            split.argument(),
            scale,
            per_component as u32
        ];
        let blocks = (split.components * n) as u32;
        backend.run(Residual, "residual_max_gradient", blocks, 128, 0, arguments)?;
        Ok(da)
    }
}
