//! MuJoCo for tests, or the reason why a test is skipped.

use std::io::Write;

use cm_envs::Error;
use cm_envs::mujoco::Mujoco;

/// MuJoCo, or `None` where it is not installed, which is said on the terminal. With
/// `CM_REQUIRE_MUJOCO` set its absence is a failure.
#[track_caller]
pub(crate) fn mujoco() -> Option<Mujoco> {
    match Mujoco::find() {
        Ok(mujoco) => Some(mujoco),
        Err(reason @ Error::SimulatorMissing { .. })
            if std::env::var_os("CM_REQUIRE_MUJOCO").is_none() =>
        {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // Past the test harness, which shows what passing tests print to nobody.
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
