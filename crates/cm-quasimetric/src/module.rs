//! The head that has a parameter, as a dfdx module.

use dfdx::nn::{
    Module, ModuleVisitor, NonMutableModule, ScalarOptions, TensorCollection, TensorOptions,
};
use dfdx::prelude::{
    Cpu, Device, Dim, Dtype, HasShape, Merge, Rank1, Storage, Tape, Tensor, ZerosTensor,
};

use crate::tape::{Form, record};
use crate::{Error, Float, Head, Reduction};

/// IQE with a learned mix of maximum and mean, as a dfdx module.
///
/// The distance is `s * max + (1 - s) * mean` of the groups' lengths with `s = sigmoid(logit)`. The
/// module's `forward` takes a pair `(x, y)` and gives pairwise distances; [`rowwise`](Self::rowwise)
/// gives row-wise ones. Optimisers, savers and [`dfdx::nn::NumParams`] see its one parameter.
///
/// ```
/// use cm_quasimetric::MaxMeanIqe;
/// use dfdx::optim::{Sgd, SgdConfig};
/// use dfdx::prelude::*;
///
/// let dev = Cpu::default();
/// let mut head: MaxMeanIqe<f32, Cpu> = MaxMeanIqe::new(&dev, 8);
/// let mut sgd = Sgd::new(&head, SgdConfig::default());
/// let x: Tensor<(usize, usize), f32, _> = dev.sample_normal_like(&(4, 64));
/// let y: Tensor<(usize, usize), f32, _> = dev.sample_normal_like(&(6, 64));
///
/// let distances = head.forward((x.trace(head.alloc_grads()), y));
/// let gradients = distances.mean().backward();
/// sgd.update(&mut head, &gradients).unwrap();
/// assert!(head.logit.array()[0] < 0.0); // less weight for the maximum makes the mean distance smaller
/// ```
#[derive(Clone, Debug)]
pub struct MaxMeanIqe<E: Dtype, D: Storage<E>> {
    /// The logit of the maximum's share.
    pub logit: Tensor<Rank1<1>, E, D>,
    /// The features are cut into this many equal groups.
    pub groups: usize,
}

impl<E: Float + Dtype> MaxMeanIqe<E, Cpu> {
    /// A head of that many groups, with the maximum and the mean weighing alike.
    pub fn new(device: &Cpu, groups: usize) -> Self {
        Self { logit: device.zeros(), groups }
    }

    /// The head with the parameter's present value.
    pub fn head(&self) -> Head {
        let logit = Float::to_f64(self.logit[[0]]);
        Head::Iqe { groups: self.groups, reduction: Reduction::MaxMean { logit } }
    }

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
        let shape = (x.shape().0,);
        record(self.head(), Form::Rowwise, Some(self.logit.clone()), x, y, shape)
    }
}

impl<N: Dim, M: Dim, W: Dim, E, TX, TY>
    Module<(Tensor<(N, W), E, Cpu, TX>, Tensor<(M, W), E, Cpu, TY>)> for MaxMeanIqe<E, Cpu>
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
        let shape = (x.shape().0, y.shape().0);
        record(self.head(), Form::Pairwise, Some(self.logit.clone()), x, y, shape)
    }
}

impl<E: Dtype, D: Storage<E>> NonMutableModule for MaxMeanIqe<E, D> {}

impl<E: Dtype, D: Device<E>> TensorCollection<E, D> for MaxMeanIqe<E, D> {
    type To<E2: Dtype, D2: Device<E2>> = MaxMeanIqe<E2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, E, D>>(
        visitor: &mut V,
    ) -> Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            (
                Self::tensor(
                    "logit",
                    |module| &module.logit,
                    |module| &mut module.logit,
                    TensorOptions::reset_to_zeros(),
                ),
                Self::scalar(
                    "groups",
                    |module| &module.groups,
                    |module| &mut module.groups,
                    ScalarOptions::from_default(32),
                ),
            ),
            |(logit, groups)| MaxMeanIqe { logit, groups },
        )
    }
}
