//! The tests that every backend must pass.
