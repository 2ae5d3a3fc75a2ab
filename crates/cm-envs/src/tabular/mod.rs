//! Finite Markov processes.

mod all_pairs;
mod chain;
mod discount;
mod file;
mod goal;
mod grid;
mod heat_map;
mod krylov;
mod occupancy;
mod pairs;
mod policy;
mod preconditioner;
mod process;
mod reach;
mod sampling;
mod solver;
mod sparse;
mod transitions;
mod wide;

pub use chain::MarkovChain;
pub use discount::Discount;
pub use file::{load, save};
pub use goal::GoalReaching;
pub use grid::{Grid, GridRules, Move, Wind};
pub use heat_map::HeatMap;
pub use pairs::AllPairs;
pub use policy::Policy;
pub use process::ControlledProcess;
pub use sampling::{Sampling, Start, Trajectory};
