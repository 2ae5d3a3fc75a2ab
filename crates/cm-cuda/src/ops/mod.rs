//! The operations, one file per family, forward beside backward.

pub(crate) mod chain;
pub(crate) mod density;
pub(crate) mod distance;
pub(crate) mod elementwise;
pub(crate) mod info_nce;
pub(crate) mod iqe;
pub(crate) mod layer_norm;
pub(crate) mod layout;
pub(crate) mod linear;
pub(crate) mod optimise;
pub(crate) mod product;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod residual;
pub(crate) mod residual_gradient;
pub(crate) mod sides;
pub(crate) mod zip;

/// The arguments of a kernel, in their order.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => {
        vec![$($crate::launch::Argument::from($argument)),*]
    };
}
pub(crate) use arguments;
