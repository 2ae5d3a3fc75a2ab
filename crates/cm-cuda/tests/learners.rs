//! Every method on the GPU: the CPU's losses, the authors' losses and gradients, exact distances.

use cm_cuda::{Precision, testing};
use cm_nn::testing::Tolerance;

macro_rules! in_precision {
    ($precision:expr, $tolerance:expr) => {
        use super::*;

        cm_learner_tests::learner_tests!(
            |seed| testing::backend(&[seed], $precision),
            $tolerance,
            || testing::device().is_some()
        );
    };
}

mod highest {
    in_precision!(Precision::Highest, Tolerance::SINGLE);
}

/// Operands have 10 bits after the point. A ReLU whose input is so close to 0 that its sign changes
/// moves a gradient most.
mod tf32 {
    in_precision!(Precision::Tf32, Tolerance { values: 2e-4, gradients: 2e-2 });
}

/// Operands have 7 bits after the point.
mod bf16 {
    in_precision!(Precision::Bf16, Tolerance { values: 2e-3, gradients: 5e-2 });
}
