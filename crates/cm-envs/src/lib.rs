//! envs
mod error;
mod output;
mod plot;
pub mod tabular;
pub use error::Error;
