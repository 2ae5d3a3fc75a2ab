//! Distances and gradients of the heads. One program, since each that uses them compiles them anew.

mod common;
mod distances;
mod errors;
mod extremes;
mod fixtures;
mod gradients;
#[cfg(feature = "dfdx")]
mod tape;
