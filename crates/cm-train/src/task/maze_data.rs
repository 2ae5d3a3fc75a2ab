//! Whether data can be of a maze.

use std::path::Path;

use cm_replay::Dataset;

use crate::{Error, Result};

/// What data of a body in a maze looks like.
pub(super) struct MazeData<'a> {
    pub(super) file: &'a Path,
    pub(super) task: &'a str,
    /// How many numbers an observation has.
    pub(super) observation: usize,
    /// How many numbers an action has.
    pub(super) action: usize,
    /// The maze's name.
    pub(super) maze: String,
}

impl MazeData<'_> {
    /// Refuses data of another body, and data of which more than one row in a thousand is in a wall.
    /// The first two numbers of an observation are the place.
    pub(super) fn check(&self, data: &Dataset, is_wall: impl Fn([f64; 2]) -> bool) -> Result<()> {
        let refuse = |reason: String| {
            Err(Error::content(self.file, format!("not data of {}: {reason}", self.task)))
        };
        for (what, expected, found) in [
            ("observation", self.observation, data.observations().columns()),
            ("action", self.action, data.actions().columns()),
        ] {
            if expected != found {
                return refuse(format!("expected {expected} numbers in an {what}, found {found}"));
            }
        }
        let (mut first, mut count) = (None, 0);
        for (row, state) in data.observations().iter().enumerate() {
            let place = [state[0], state[1]].map(f64::from);
            // Cells begin at -6; what is below them would count as the first.
            let outside = place.iter().any(|x| !x.is_finite() || *x < -4.0);
            if outside || is_wall(place) {
                first = first.or(Some((row, place)));
                count += 1;
            }
        }
        // A body that is pressed against a wall may be in it by a hair.
        let rows = data.observations().rows();
        let Some((row, place)) = first.filter(|_| count > rows / 1000) else { return Ok(()) };
        refuse(format!(
            "{count} of {rows} rows are in walls of the maze {}, row {row} at {place:?}",
            self.maze
        ))
    }
}
