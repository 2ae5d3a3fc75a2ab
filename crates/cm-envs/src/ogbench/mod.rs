//! OGBench's mazes on MuJoCo: a point or an ant, four mazes, five tasks in each.
//!
//! [`OgMaze`] is a maze as OGBench evaluates agents in it, [`Collector`] collects data by its
//! recipe, [`OgTask`] names both, such as `pointmaze-medium-navigate-v0`. MuJoCo is loaded at run
//! time ([`crate::mujoco`]).
//!
//! # The evaluation protocol
//!
//! | | point | ant |
//! |---|---|---|
//! | observation | place (2) | place, posture and velocities (29) |
//! | action | moves by 0.2 of it | torques of 8 motors, in `[-1, 1]` |
//! | a step lasts | 0.1 s, five steps of MuJoCo | the same |
//! | success | within 1.0 of the goal | within 0.5 of it |
//!
//! Each of the five tasks has a cell to start in and one to go to; start and goal are beside their
//! cells' centres by `U(-1, 1)` in each coordinate. The goal is a whole observation: the body is
//! reset, does five random actions and is then put at the goal. An episode ends at success or after
//! 1000 steps. Actions are clipped to `[-1, 1]` ([`Body::step`] itself does not clip what moves the
//! point).
//!
//! In the maze `teleport`, a body that comes within 1.5 of one of two cells' centres is put at one
//! of three others, one of which is walled in. The observation of that step is the one from before.
//!
//! Floor and walls have no contact margin. OGBench's inherit the ant's 0.01, of which MuJoCo takes
//! the larger of a pair before version 3.5, as when the benchmark was published, and the sum since:
//! without margin both come to the benchmark's 0.01.

mod agent;
mod body;
mod collector;
mod description;
mod maze;
mod navigation;
mod task;
mod world;

pub use agent::Agent;
pub use body::{Body, Moved};
pub use collector::{Chance, Collected, Collector, Draws};
pub use description::mjcf;
pub use maze::{Maze, Teleports};
pub use navigation::Navigator;
pub use task::{Behaviour, OgTask};
pub use world::{OgEpisode, OgMaze};

pub use crate::ant_maze::Cell;

/// The streams of random numbers of this environment, among those of environments.
mod streams {
    /// Step `k`: episode `k` of the data.
    pub(super) const DATA: u32 = 0x230;
}
