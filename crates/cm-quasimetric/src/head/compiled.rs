//! The kernels, compiled once for each element type.
//!
//! A generic function is compiled where it is called, as that crate is: a program's debug build
//! would have slow distances however its dependencies are optimised, and every crate that computes
//! distances would wait for the kernels again. These functions have one type each, and so are
//! compiled here.

use super::{Head, Recorded, distances, gradients};
use crate::float::Kernel;
use crate::{Error, Rows};

/// What [`Head`]'s generic functions do, for one element type. Public only as a supertrait of
/// [`Float`](crate::Float).
#[doc(hidden)]
pub trait Compiled: Kernel {
    /// [`Head::rowwise`].
    fn rowwise(
        head: &Head,
        x: Rows<'_, Self>,
        y: Rows<'_, Self>,
        distances: &mut [Self],
    ) -> Result<(), Error>;
    /// [`Head::distance`].
    fn distance(head: &Head, x: &[Self], y: &[Self]) -> Result<Self, Error>;
    /// [`Head::pairwise`].
    fn pairwise(
        head: &Head,
        x: Rows<'_, Self>,
        y: Rows<'_, Self>,
        distances: &mut [Self],
    ) -> Result<(), Error>;
    /// [`Head::pairwise_recorded`].
    fn pairwise_recorded(
        head: &Head,
        x: Rows<'_, Self>,
        y: Rows<'_, Self>,
        distances: &mut [Self],
    ) -> Result<Recorded<Self>, Error>
    where
        Self: crate::Float;
    /// [`Head::rowwise_backward`].
    fn rowwise_backward(
        head: &Head,
        x: Rows<'_, Self>,
        y: Rows<'_, Self>,
        grad: &[Self],
        grads: (&mut [Self], &mut [Self]),
    ) -> Result<Self, Error>;
    /// [`Head::pairwise_backward`], or [`Recorded::backward`].
    fn pairwise_backward(
        head: &Head,
        recorded: Option<&Recorded<Self>>,
        x: Rows<'_, Self>,
        y: Rows<'_, Self>,
        grad: &[Self],
        grads: (&mut [Self], &mut [Self]),
    ) -> Result<Self, Error>
    where
        Self: crate::Float;
}

macro_rules! compile {
    ($($float:ty),*) => {$(
        impl Compiled for $float {
            #[inline(never)]
            fn rowwise(
                head: &Head,
                x: Rows<'_, Self>,
                y: Rows<'_, Self>,
                distances: &mut [Self],
            ) -> Result<(), Error> {
                distances::rowwise(head, x, y, distances)
            }
            #[inline(never)]
            fn distance(head: &Head, x: &[Self], y: &[Self]) -> Result<Self, Error> {
                distances::distance(head, x, y)
            }
            #[inline(never)]
            fn pairwise(
                head: &Head,
                x: Rows<'_, Self>,
                y: Rows<'_, Self>,
                distances: &mut [Self],
            ) -> Result<(), Error> {
                distances::pairwise(head, x, y, distances)
            }
            #[inline(never)]
            fn pairwise_recorded(
                head: &Head,
                x: Rows<'_, Self>,
                y: Rows<'_, Self>,
                distances: &mut [Self],
            ) -> Result<Recorded<Self>, Error> {
                gradients::pairwise_recorded(head, x, y, distances)
            }
            #[inline(never)]
            fn rowwise_backward(
                head: &Head,
                x: Rows<'_, Self>,
                y: Rows<'_, Self>,
                grad: &[Self],
                grads: (&mut [Self], &mut [Self]),
            ) -> Result<Self, Error> {
                gradients::rowwise_backward(head, x, y, grad, grads)
            }
            #[inline(never)]
            fn pairwise_backward(
                head: &Head,
                recorded: Option<&Recorded<Self>>,
                x: Rows<'_, Self>,
                y: Rows<'_, Self>,
                grad: &[Self],
                grads: (&mut [Self], &mut [Self]),
            ) -> Result<Self, Error> {
                gradients::pairwise_backward(head, recorded, x, y, grad, grads)
            }
        }
    )*};
}

compile!(f32, f64);
