#![doc = include_str!("../README.md")]

mod error;
mod output;
mod plot;
pub mod tabular;

pub use error::Error;
