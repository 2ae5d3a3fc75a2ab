//! The paper's controlled 2-D navigation experiment (Figures 2 and 3): a plane with one-way paths,
//! in which far goals are reached only by joining pieces of trajectories that were never seen
//! together.
//!
//! Noisy curves are drawn through the plane ([`Path`]). Some of their points are the states; from a
//! state one moves to states near it, and by preference the way the curves run.

mod data;
mod nearest;
mod paths;
mod settings;
mod world;

pub use data::{Collection, Trajectories};
pub use nearest::Nearest;
pub use paths::Path;
pub use settings::PointMazeSettings;
pub use world::{PointEpisode, PointMaze};

/// The streams of random numbers of this environment, among those of environments.
mod streams {
    /// Step `k`: path `k`.
    pub(super) const PATHS: u32 = 0x210;
    /// Which path points are states.
    pub(super) const STATES: u32 = 0x211;
    /// Step `k`: trajectory `k` of the data.
    pub(super) const DATA: u32 = 0x212;
}
