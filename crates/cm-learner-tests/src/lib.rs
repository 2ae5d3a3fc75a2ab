#![doc = include_str!("../README.md")]

mod authors_code;
pub mod controlled;
mod exact;
mod fixture;
mod follow;
mod learners;
mod ogbench;
pub mod study;

pub use authors_code::authors_code;
pub use controlled::controlled_distances;
pub use exact::exact_distances;
pub use follow::follows_the_cpu;
pub use learners::{Make, learners};
pub use ogbench::ogbench_code;

/// One `#[test]` for each property of this crate, on the backends that `$make` (seed to backend)
/// makes, with a [`Tolerance`](cm_nn::testing::Tolerance) if it is not that of single precision, and
/// skipped where `$runs` (nothing to `bool`) returns `false`.
#[macro_export]
macro_rules! learner_tests {
    ($make:expr) => {
        $crate::learner_tests!($make, cm_nn::testing::Tolerance::SINGLE);
    };
    ($make:expr, $tolerance:expr) => {
        $crate::learner_tests!($make, $tolerance, || true);
    };
    ($make:expr, $tolerance:expr, $runs:expr) => {
        $crate::learner_tests!(@if $runs; follows_the_cpu, {
            $crate::follows_the_cpu(&cm_nn::testing::Suite::new($make, $tolerance))
        });
        $crate::learner_tests!(@if $runs; authors_code, {
            $crate::authors_code(&cm_nn::testing::Suite::new($make, $tolerance))
        });
        $crate::learner_tests!(@if $runs; ogbench_code, {
            $crate::ogbench_code(&cm_nn::testing::Suite::new($make, $tolerance))
        });
        $crate::learner_tests!(@if $runs; controlled_distances, {
            $crate::controlled_distances(&cm_nn::testing::Suite::new($make, $tolerance));
            Ok(())
        });
        $crate::learner_tests!(@if $runs; exact_distances_of_a_stochastic_chain, {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 0);
            Ok(())
        });
        $crate::learner_tests!(@if $runs; exact_distances_of_a_slippery_grid_with_a_one_way_door, {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 1);
            Ok(())
        });
        $crate::learner_tests!(@if $runs; exact_distances_of_a_random_process, {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 2);
            Ok(())
        });
    };
    (@if $runs:expr; $name:ident, $body:block) => {
        #[test]
        fn $name() -> cm_nn::Result<()> {
            if !($runs)() {
                return Ok(());
            }
            $body
        }
    };
}
