#![doc = include_str!("../README.md")]

mod abreast;
mod arena;
mod backend;
mod capture;
mod compile;
mod data;
mod device;
mod distances;
mod driver;
mod error;
mod fuse;
mod heads;
mod launch;
mod logits;
mod memory;
mod nvrtc;
mod operands;
mod ops;
mod precision;
mod profile;
mod schedule;
mod share;
mod tape;
mod tensor;
pub mod testing;

pub use backend::CudaBackend;
pub use data::{DeviceData, GatherSettings, Gathered};
pub use device::{Device, DeviceInfo};
pub use error::{Error, Result};
pub use heads::Heads;
pub use precision::Precision;
pub use tensor::{CudaCell, CudaTensor};
