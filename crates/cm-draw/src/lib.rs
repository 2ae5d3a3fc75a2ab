#![doc = include_str!("../README.md")]

mod axes;
mod colours;
mod error;
mod picture;
mod shapes;

pub use axes::{label, text, ticks};
pub use colours::{PALETTE, colour, contrasting};
pub use error::Error;
pub use picture::{Drawing, Drawn, save};
pub use shapes::{COLOUR_SCALE_WIDTH, colour_scale, star};
