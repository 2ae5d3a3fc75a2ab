//! The kernels, compiled once for each element type.
//!
//! A generic function is compiled where it is called, as that crate is: a program's debug build
//! would have slow distances however its dependencies are optimised, and every crate that computes
//! distances would wait for the kernels again. These functions have one type each, and so are
//! compiled here.

use super::{Head, Recorded, distances, gradients};
use crate::float::Kernel;
use crate::{Error, Rows};

/// The trait and its implementations, from one list: each function hands over to the generic one.
macro_rules! compiled {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $module:ident;)*) => {
        /// What [`Head`]'s generic functions do, for one element type. Public only as a supertrait
        /// of [`Float`](crate::Float).
        #[doc(hidden)]
        pub trait Compiled: Kernel {
            $(fn $name($($argument: $type),*) -> Result<$output, Error> where Self: crate::Float;)*
        }

        compiled!(@for f32, $(fn $name($($argument: $type),*) -> $output = $module;)*);
        compiled!(@for f64, $(fn $name($($argument: $type),*) -> $output = $module;)*);
    };
    (
        @for $float:ty,
        $(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty = $module:ident;)*
    ) => {
        impl Compiled for $float {
            $(
                #[inline(never)]
                fn $name($($argument: $type),*) -> Result<$output, Error> {
                    $module::$name($($argument),*)
                }
            )*
        }
    };
}

compiled! {
    fn rowwise(
        head: &Head, x: Rows<'_, Self>, y: Rows<'_, Self>, out: &mut [Self]
    ) -> () = distances;
    fn distance(head: &Head, x: &[Self], y: &[Self]) -> Self = distances;
    fn pairwise(
        head: &Head, x: Rows<'_, Self>, y: Rows<'_, Self>, out: &mut [Self]
    ) -> () = distances;
    fn pairwise_recorded(
        head: &Head, x: Rows<'_, Self>, y: Rows<'_, Self>, out: &mut [Self]
    ) -> Recorded<Self> = gradients;
    fn rowwise_backward(
        head: &Head, x: Rows<'_, Self>, y: Rows<'_, Self>, grad: &[Self],
        grads: (&mut [Self], &mut [Self])
    ) -> Self = gradients;
    fn pairwise_backward(
        head: &Head, recorded: Option<&Recorded<Self>>, x: Rows<'_, Self>, y: Rows<'_, Self>,
        grad: &[Self], grads: (&mut [Self], &mut [Self])
    ) -> Self = gradients;
}
