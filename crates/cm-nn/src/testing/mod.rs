//! The tests that every backend must pass: each operation's values and gradients against double
//! precision.
//!
//! A backend's crate depends on cm-nn with the feature `testing` and writes, with any function from
//! a seed to a backend,
//!
//! ```
//! # use cm_nn::DfdxBackend;
//! cm_nn::backend_tests!(DfdxBackend::new);
//! ```
//!
//! which makes one `#[test]` per operation. A backend with products of reduced precision states its
//! own [`Tolerance`] as a second argument. One that not every machine can run gives a third, a
//! function that says why and returns `false` where its tests are to be skipped.

mod capture;
mod check;
mod elementwise;
mod exact;
mod layers;
mod layout;
mod learning;
mod optimisers;
mod random;
mod replicas;
mod scopes;

pub use capture::{captured_cells, captured_steps, captured_uploads, full, reads_together};
pub use check::{Suite, Tolerance};
pub use elementwise::{affine, composed, kinks, map, reduce, reduce_edges, zip};
pub use exact::Exact;
pub use layers::{l2_normalize, layer_norm, linear, perceptrons};
pub use layout::{concat, diagonal, gather, roll, slice, transpose};
pub use learning::{density, density_at_the_bounds, info_nce, quasimetric};
pub use optimisers::{adam, adam_resumes_exactly, blend, sgd};
pub use random::{categorical, draws, permutation};
pub use replicas::{Replicated, replicas};
pub use scopes::{cells, constants, failures, repeats_itself, wanted_parameters};

/// One `#[test]` for each function of [`testing`](crate::testing), on the backends that `$make`
/// (seed to backend) makes, with a [`Tolerance`](crate::testing::Tolerance) if it is not that of
/// single precision, and skipped where `$runs` (nothing to `bool`) returns `false`.
#[macro_export]
macro_rules! backend_tests {
    ($make:expr) => {
        $crate::backend_tests!($make, $crate::testing::Tolerance::SINGLE);
    };
    ($make:expr, $tolerance:expr) => {
        $crate::backend_tests!($make, $tolerance, || true);
    };
    ($make:expr, $tolerance:expr, $runs:expr) => {
        $crate::backend_tests!(@each $make, $tolerance, $runs;
            adam, adam_resumes_exactly, affine, blend, captured_cells, captured_steps,
            captured_uploads, categorical, cells, composed, concat, constants, density,
            density_at_the_bounds, diagonal, draws, failures, full, gather, info_nce, kinks,
            l2_normalize, layer_norm, linear, map, perceptrons, permutation, quasimetric, reads_together, reduce,
            reduce_edges, repeats_itself, roll, sgd, slice, transpose, wanted_parameters, zip
        );
    };
    (@each $make:expr, $tolerance:expr, $runs:expr; $($name:ident),*) => {
        $(
            #[test]
            fn $name() -> $crate::Result<()> {
                if !($runs)() {
                    return Ok(());
                }
                $crate::testing::$name(&$crate::testing::Suite::new($make, $tolerance))
            }
        )*
    };
}
