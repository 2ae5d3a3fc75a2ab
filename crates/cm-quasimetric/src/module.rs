//! The head that has a parameter, as a dfdx module.

use dfdx::nn::{
    BuildOnDevice, Module, ModuleVisitor, NonMutableModule, TensorCollection, TensorOptions,
};
use dfdx::prelude::{BuildModule, Cpu, Device, Dim, Dtype, Merge, Rank1, Storage, Tape, Tensor};

use crate::tape::{pairwise_max_mean, rowwise_max_mean};
use crate::{Error, Float};

/// The specification of a [`MaxMeanIqe`], like dfdx's own builders.
#[derive(Clone, Copy, Debug)]
pub struct MaxMeanIqeConfig<const GROUPS: usize>;

/// IQE with a learned mix of maximum and mean, as a dfdx module.
///
/// The distance is `s * max + (1 - s) * mean` of the lengths of `GROUPS` groups of features, with
/// `s = sigmoid(logit)`. The module's `forward` takes a pair `(x, y)` and gives pairwise distances;
/// [`rowwise`](Self::rowwise) gives row-wise ones. The numbers of rows and features are free.
///
/// ```
/// use cm_quasimetric::MaxMeanIqeConfig;
/// use dfdx::optim::{Sgd, SgdConfig};
/// use dfdx::prelude::*;
///
/// let dev = Cpu::default();
/// let mut head = dev.build_module::<MaxMeanIqeConfig<8>, f32>();
/// let mut sgd = Sgd::new(&head, SgdConfig::default());
/// let x: Tensor<(usize, usize), f32, _> = dev.sample_normal_like(&(4, 64));
/// let y: Tensor<(usize, usize), f32, _> = dev.sample_normal_like(&(6, 64));
///
/// let distances = head.forward((x.trace(head.alloc_grads()), y));
/// let gradients = distances.mean().backward();
/// sgd.update(&mut head, &gradients).unwrap();
/// assert!(head.logit.array()[0] < 0.0); // less weight for the maximum shortens the distances
/// ```
#[derive(Clone, Debug)]
pub struct MaxMeanIqe<const GROUPS: usize, E: Dtype, D: Storage<E>> {
    /// The logit of the maximum's share, 0 at first.
    pub logit: Tensor<Rank1<1>, E, D>,
}

impl<const GROUPS: usize, E: Float + Dtype> MaxMeanIqe<GROUPS, E, Cpu> {
    /// The distance between each row of `x` and the same row of `y`.
    pub fn rowwise<N: Dim, W: Dim, TX, TY>(
        &self,
        x: Tensor<(N, W), E, Cpu, TX>,
        y: Tensor<(N, W), E, Cpu, TY>,
    ) -> Result<Tensor<(N,), E, Cpu, TX>, Error>
    where
        TX: Tape<E, Cpu> + Merge<TY>,
        TY: Tape<E, Cpu>,
    {
        rowwise_max_mean(GROUPS, &self.logit, x, y)
    }
}

impl<const GROUPS: usize, N: Dim, M: Dim, W: Dim, E, TX, TY>
    Module<(Tensor<(N, W), E, Cpu, TX>, Tensor<(M, W), E, Cpu, TY>)> for MaxMeanIqe<GROUPS, E, Cpu>
where
    E: Float + Dtype,
    TX: Tape<E, Cpu> + Merge<TY>,
    TY: Tape<E, Cpu>,
{
    type Output = Tensor<(N, M), E, Cpu, TX>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, y): (Tensor<(N, W), E, Cpu, TX>, Tensor<(M, W), E, Cpu, TY>),
    ) -> Result<Self::Output, Error> {
        pairwise_max_mean(GROUPS, &self.logit, x, y)
    }
}

impl<const GROUPS: usize, E: Dtype, D: Device<E>> BuildOnDevice<D, E> for MaxMeanIqeConfig<GROUPS> {
    type Built = MaxMeanIqe<GROUPS, E, D>;

    fn try_build_on_device(device: &D) -> Result<Self::Built, D::Err> {
        Self::Built::try_build(device)
    }
}

impl<const GROUPS: usize, E: Dtype, D: Storage<E>> NonMutableModule for MaxMeanIqe<GROUPS, E, D> {}

impl<const GROUPS: usize, E: Dtype, D: Device<E>> TensorCollection<E, D>
    for MaxMeanIqe<GROUPS, E, D>
{
    type To<E2: Dtype, D2: Device<E2>> = MaxMeanIqe<GROUPS, E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            Self::tensor(
                "logit",
                |module| &module.logit,
                |module| &mut module.logit,
                TensorOptions::reset_to_zeros(),
            ),
            |logit| MaxMeanIqe { logit },
        )
    }
}
