//! The policy that walks where the data sets of AntMaze are generated: the one that is shipped, how
//! well it walks, and how another is trained.

mod evaluate;
mod mirror;
mod policy;
mod published;
mod train;

pub use evaluate::{EvaluateSettings, Evaluator, Walks};
pub use policy::{Actions, Expert, ExpertFile};
pub use train::{Rules, TrainSettings, train};

/// The simulator, unless it is not here, which `test` then says; `CM_REQUIRE_MUJOCO` forbids that.
#[cfg(test)]
fn simulator(test: &str) -> Option<cm_envs::mujoco::Mujoco> {
    use std::io::Write;

    cm_envs::mujoco::Mujoco::find()
        .inspect_err(|reason| {
            assert!(std::env::var_os("CM_REQUIRE_MUJOCO").is_none(), "{reason}");
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
        })
        .ok()
}
