//! The suite that every backend must pass, on the GPU in each precision.

use cm_cuda::{Precision, testing};
use cm_nn::testing::{Suite, Tolerance};

/// One `#[test]` for each of the functions of `cm_nn::testing`; skipped where there is no GPU.
macro_rules! on_the_gpu {
    ($precision:expr, $tolerance:expr; $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() -> cm_nn::Result<()> {
                if testing::device().is_none() {
                    return Ok(());
                }
                let make = |seed| testing::backend(&[seed], $precision);
                cm_nn::testing::$name(&Suite::new(make, $tolerance))
            }
        )*
    };
}

/// As exact as the CPU.
mod highest {
    use super::*;

    cm_nn::backend_tests!(
        |seed| testing::backend(&[seed], Precision::Highest),
        Tolerance::SINGLE,
        || testing::device().is_some()
    );
}

/// What has products: operands have 10 bits after the point. Gradients differ most where a ReLU's
/// input is so close to 0 that its sign changes.
mod tf32 {
    use super::*;

    on_the_gpu!(
        Precision::Tf32, Tolerance { values: 2e-3, gradients: 1e-1 };
        captured_steps, linear, repeats_itself,
    );
}

/// Operands have 7 bits after the point.
mod bf16 {
    use super::*;

    on_the_gpu!(
        Precision::Bf16, Tolerance { values: 2e-2, gradients: 3e-1 };
        captured_steps, linear, repeats_itself,
    );
}

/// Several seeds at once are the same seeds alone, bit for bit.
#[test]
fn replicas() -> cm_nn::Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for precision in [Precision::Highest, Precision::Tf32, Precision::Bf16] {
        let several = |seeds: &[u64]| Ok(testing::backend(seeds, precision));
        cm_nn::testing::replicas(|seed| testing::backend(&[seed], precision), several)?;
    }
    Ok(())
}
