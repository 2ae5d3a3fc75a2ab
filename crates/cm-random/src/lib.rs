#![doc = include_str!("../README.md")]

mod convert;
mod normal;
mod philox;
mod stream;

pub use convert::{below_u32, below_u64, positive_unit_f32, unit_f32, unit_f64};
pub use normal::normal_pair;
pub use philox::{Philox, philox4x32_10};
pub use stream::Stream;
