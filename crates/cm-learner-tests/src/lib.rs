#![doc = include_str!("../README.md")]

mod authors_code;
mod exact;
mod fixture;
mod follow;
mod learners;
pub mod study;

pub use authors_code::authors_code;
pub use exact::exact_distances;
pub use follow::follows_the_cpu;
pub use learners::{Make, learners};

/// One `#[test]` for each property of this crate, on the backends that `$make` (seed to backend)
/// makes, with a [`Tolerance`](cm_nn::testing::Tolerance) if it is not that of single precision.
#[macro_export]
macro_rules! learner_tests {
    ($make:expr) => {
        $crate::learner_tests!($make, cm_nn::testing::Tolerance::SINGLE);
    };
    ($make:expr, $tolerance:expr) => {
        #[test]
        fn follows_the_cpu() -> cm_nn::Result<()> {
            $crate::follows_the_cpu(&cm_nn::testing::Suite::new($make, $tolerance))
        }

        #[test]
        fn authors_code() -> cm_nn::Result<()> {
            $crate::authors_code(&cm_nn::testing::Suite::new($make, $tolerance))
        }

        #[test]
        fn exact_distances_of_a_stochastic_chain() {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 0);
        }

        #[test]
        fn exact_distances_of_a_slippery_grid_with_a_one_way_door() {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 1);
        }

        #[test]
        fn exact_distances_of_a_random_process() {
            $crate::exact_distances(&cm_nn::testing::Suite::new($make, $tolerance), 2);
        }
    };
}
