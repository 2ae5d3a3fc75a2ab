//! The tests that every backend must pass: each operation's values and gradients against double precision.
//!
//! A backend's crate depends on cm-nn with the feature `testing` and writes, with any function from a seed to a backend,
//!
//! ```
//! # use cm_nn::DfdxBackend;
//! cm_nn::backend_tests!(DfdxBackend::new);
//! ```
//!
//! which makes one `#[test]` per operation.

mod check;
mod elementwise;
mod exact;
mod layers;
mod layout;
mod learning;
mod optimisers;
mod random;
mod scopes;

pub use check::{check, check_along};
pub use elementwise::{affine, composed, kinks, map, reduce, reduce_edges, zip};
pub use exact::Exact;
pub use layers::{layer_norm, linear, perceptrons};
pub use layout::{concat, diagonal, gather, roll, slice, transpose};
pub use learning::{density, density_at_the_bounds, info_nce, quasimetric};
pub use optimisers::{adam, adam_resumes_exactly, blend, sgd};
pub use random::{categorical, draws, permutation};
pub use scopes::{cells, constants, failures, repeats_itself, wanted_parameters};

/// One `#[test]` for each function of [`testing`](crate::testing), on the backends that `$make` (seed to backend) makes.
#[macro_export]
macro_rules! backend_tests {
    ($make:expr) => {
        $crate::backend_tests!(@each $make;
            adam, adam_resumes_exactly, affine, blend, categorical, cells, composed, concat, constants, density,
            density_at_the_bounds, diagonal, draws, failures, gather, info_nce, kinks, layer_norm, linear, map,
            perceptrons, permutation, quasimetric, reduce, reduce_edges, repeats_itself, roll, sgd, slice, transpose,
            wanted_parameters, zip
        );
    };
    (@each $make:expr; $($name:ident),*) => {
        $(
            #[test]
            fn $name() -> $crate::Result<()> {
                $crate::testing::$name($make)
            }
        )*
    };
}
