//! Finite Markov processes.

mod all_pairs;
mod chain;
mod discount;
mod file;
mod goal;
mod krylov;
mod occupancy;
mod pairs;
mod policy;
mod process;
mod reach;
mod solver;
mod transitions;
mod wide;

pub use chain::MarkovChain;
pub use discount::Discount;
pub use file::{load, save};
pub use goal::GoalReaching;
pub use pairs::AllPairs;
pub use policy::Policy;
pub use process::ControlledProcess;
