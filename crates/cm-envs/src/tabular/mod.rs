//! Finite Markov processes, where everything the paper defines can be computed exactly.
//!
//! | paper | here |
//! |---|---|
//! | Eq. 1 (`eq:goal_value`), `V*(s) = max_pi p(g | s)` | [`GoalReaching::goal_values`] |
//! | Eq. 2 (`eq:succesor_density`), `p(g | s)`, which counts t = 0 | [`MarkovChain::occupancy`], of a policy after [`ControlledProcess::under`] |
//! | Eq. 3 (`eq:sa_discounted_def`), `p(g, a' | s, a)` | [`ControlledProcess::occupancy_with_actions`] |
//! | Eq. 4 (`eq:basic_quasimetric_definition`), the controlled distance | [`ControlledProcess::reach`], [`ControlledProcess::successor_distances`] |
//! | Eq. 5 (`eq:basic_quasimetric_definition_uncontrolled`), the distance of a chain | [`MarkovChain::successor_distances`] |
//! | Eq. 6 (`eq:basic_quasimetric_definition_actions`), the distance with actions | [`GoalReaching::pair_distance`] |
//! | Lemma `thm:sa_indep`, `d(s, a, g)` | [`GoalReaching::action_distance`] |
//! | Lemma `thm:hitting_time`, `E[gamma^H]` | [`MarkovChain::hitting_transforms_to`] |
//!
//! Distances are in nats; divided by [`Discount::step_length`] they are in certain steps. In a
//! deterministic process that can stay where it is they are the hitting times, in the unit
//! log(1/gamma).
//!
//! # Cost
//!
//! A single goal takes time that grows a little faster than the number of transitions (policy
//! iteration, each round a sparse linear system). All pairs of a chain are one dense factorisation,
//! the cube of the number of states, or, where there are more than a thousand states for each
//! successor, one goal after another like all pairs of a controlled process: a little more than the
//! square. Goals run in parallel.

mod all_pairs;
mod chain;
mod discount;
mod elimination;
mod file;
mod goal;
mod grid;
#[cfg(feature = "pictures")]
mod heat_map;
mod krylov;
mod occupancy;
mod pairs;
mod policy;
mod preconditioner;
mod process;
mod product;
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
#[cfg(feature = "pictures")]
pub use heat_map::HeatMap;
pub use pairs::AllPairs;
pub use policy::Policy;
pub use process::ControlledProcess;
pub use sampling::{Sampling, Start, Trajectory};
