//! D4RL's AntMaze on MuJoCo: a four-legged ant of eight motors that finds its way through a maze.
//!
//! The six tasks of D4RL's version 2 ([`Task`]) as environments ([`AntMaze`]), and a [`Collector`]
//! of their data: a policy that can walk in any direction is sent from cell to cell by a [`Guide`],
//! by one of several [`Recipe`]s. MuJoCo is loaded at run time ([`crate::mujoco`]).
//!
//! # The evaluation protocol
//!
//! | | umaze | medium | large |
//! |---|---|---|---|
//! | start | (0, 0), each coordinate within 0.1 | the same | the same |
//! | goal, redrawn in every episode | `[0, 1.5] x [8, 9.5]` | `[20, 21.5] x [20, 21.5]` | `[32, 33.5] x [24, 25.5]` |
//! | steps at most | 700 | 1000 | 1000 |
//!
//! A goal is the centre of its cell plus `U(0, 1) + U(0, 0.5)` in each coordinate. An episode
//! succeeds when the torso is within 0.5 of the goal in the plane, and ends then. A step lasts 0.1
//! s: five steps of 0.02 s with the same torques. An ant that lies on its back stays there.
//!
//! An observation has 29 numbers: place (3), orientation (quaternion, 4), the angles of hip and
//! ankle of legs 1 to 4 (8), and their velocities (3 + 3 + 8). An action has 8 torques in
//! `[-1, 1]`, clipped, in the order of the motors: hip and ankle of legs 4, 1, 2, 3.

mod ant;
mod collector;
mod description;
mod guide;
mod maze;
mod navigation;
#[cfg(feature = "pictures")]
mod picture;
mod recipe;
mod task;
mod ways;
mod world;

pub use ant::{ACTION, Ant, STATE, standing, uprightness};
pub use collector::{Collected, Collector};
pub use description::mjcf;
pub(crate) use description::{write_ant, write_motors};
pub use guide::{Guide, policy_input};
pub use maze::{Cell, Maze, SCALE};
pub use navigation::{CellRule, Navigator};
#[cfg(feature = "pictures")]
pub use picture::{Animation, Coverage, Paths};
pub use recipe::Recipe;
pub use task::Task;
pub use ways::ShortestWays;
pub use world::{AntEpisode, AntMaze, is_near};

/// The streams of random numbers of this environment, among those of environments.
mod streams {
    /// Step `k`: episode `k` of the data.
    pub(super) const DATA: u32 = 0x220;
}
