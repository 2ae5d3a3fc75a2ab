//! envs
mod error;
mod output;
pub mod tabular;
pub use error::Error;
