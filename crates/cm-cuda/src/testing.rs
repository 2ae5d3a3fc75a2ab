//! What tests that need a GPU share.

use crate::{CudaBackend, Device, Precision};

/// Says that a test did not run and why; fails instead if `CM_REQUIRE_CUDA` is set.
pub fn skip(reason: &str) {
    let is_required = std::env::var_os("CM_REQUIRE_CUDA").is_some_and(|value| value != "0");
    assert!(!is_required, "CM_REQUIRE_CUDA is set, but {reason}");
    println!("SKIPPED: {reason}");
}

/// The first device, or `None` after saying why there is none.
pub fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

/// A backend on a device of its own handle.
///
/// # Panics
/// If there is no GPU; tests ask [`device`] first.
pub fn backend(seeds: &[u64], precision: Precision) -> CudaBackend {
    let device = Device::open(0).unwrap_or_else(|error| panic!("{error}"));
    CudaBackend::new(&device, seeds, precision).unwrap_or_else(|error| panic!("{error}"))
}
