#![doc = include_str!("../README.md")]

mod activation;
pub mod backend;
mod capture;
pub mod check;
mod dfdx_backend;
mod error;
mod gradients;
mod initialise;
mod modules;
mod optimise;
pub mod or_none;
mod parameters;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod var;

pub use activation::Activation;
pub use backend::{Axis, Backend, Direction, Distribution, Map, Over, Pairing, Reduce, Zip};
pub use capture::{Captured, Values};
pub use cm_quasimetric::{Head, Reduction};
pub use dfdx_backend::{DfdxBackend, FixedLayer};
pub use error::{Error, Result, Shape};
pub use gradients::{Gradients, gradients};
pub use initialise::{Fan, Initialiser, Spread};
pub use modules::{
    FixedMlp, FixedQuasimetric, LayerNorm, Linear, Mlp, MlpSettings, Quasimetric,
    QuasimetricSettings, Twin,
};
pub use optimise::{Adam, AdamSettings, Decay, Ema, Sgd};
pub use parameters::{Matrix, Parameter, ParameterSets, Parameters, Snapshot};
pub use var::Var;
