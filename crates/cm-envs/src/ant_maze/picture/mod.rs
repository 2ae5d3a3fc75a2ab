//! Pictures of a maze from above: paths, where data has been, and an episode as an animation.

mod animation;
mod coverage;
mod frame;
mod paths;
mod skeleton;

pub use animation::Animation;
pub use coverage::Coverage;
pub use paths::Paths;
