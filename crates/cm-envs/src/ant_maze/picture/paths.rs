//! Paths through a maze.

use std::path::Path;

use cm_draw::{Drawing, Drawn, colour};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::frame::Frame;
use crate::ant_maze::Maze;
use crate::{Error, Outcome};

/// The paths of episodes through a maze, each in a colour of its own, with their goals as discs and
/// their starts as rings.
///
/// ```
/// use cm_envs::Outcome;
/// use cm_envs::ant_maze::{Maze, Paths};
///
/// let path = vec![[0.0, 0.0], [8.0, 0.5], [8.0, 8.0], [1.0, 8.5]];
/// let outcome = Outcome { task: 0, success: true, steps: 3, goal: vec![1.0, 8.5], path };
/// let picture = Paths { maze: Maze::Umaze, outcomes: &[outcome], title: "Once around" };
/// picture.save(std::env::temp_dir().join("once-around.png"))?; // or .svg
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    /// The maze.
    pub maze: Maze,
    /// Episodes whose paths were kept.
    pub outcomes: &'a [Outcome],
    /// Headline.
    pub title: &'a str,
}

impl Paths<'_> {
    /// Writes the picture as PNG or SVG, as the extension says. A file already there is replaced at
    /// once or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        Ok(cm_draw::save(path.as_ref(), self.frame().size(), self)?)
    }

    fn frame(&self) -> Frame {
        Frame::new(self.maze, 800, 40)
    }
}

impl Drawing for Paths<'_> {
    fn draw<Backend: DrawingBackend>(&self, area: &DrawingArea<Backend, Shift>) -> Drawn<Backend> {
        let frame = self.frame();
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title, (10, 10), ("sans-serif", 20)))?;
        frame.draw_walls(area)?;
        for outcome in self.outcomes {
            if let [x, y] = outcome.goal[..] {
                frame.draw_goal(area, [x.into(), y.into()])?;
            }
        }
        let last = self.outcomes.len().saturating_sub(1).max(1) as f64;
        for (number, outcome) in self.outcomes.iter().enumerate() {
            let colour = colour(0.85 * number as f64 / last);
            let pixels: Vec<_> =
                outcome.path.iter().map(|place| frame.pixel(place.map(f64::from))).collect();
            if let Some(&start) = pixels.first() {
                area.draw(&Circle::new(start, frame.pixels(0.3), colour.stroke_width(2)))?;
            }
            area.draw(&PathElement::new(pixels, colour.stroke_width(2)))?;
        }
        Ok(())
    }
}
