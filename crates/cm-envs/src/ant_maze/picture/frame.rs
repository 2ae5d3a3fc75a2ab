//! The maze itself: where a place of the plane is in the picture, and the walls.

use cm_draw::Drawn;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::ant_maze::{Maze, SCALE};

pub(super) const WALL: RGBColor = RGBColor(70, 74, 82);
pub(super) const GOAL: RGBColor = RGBColor(214, 39, 40);

/// A maze drawn so that a unit has `scale` pixels, below `top` pixels of something else. North, the
/// direction of y, is up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    maze: Maze,
    scale: f64,
    top: i32,
}

impl Frame {
    /// At most `width` pixels wide. A unit has an even number of pixels, so that squares of half a
    /// unit are all of the same size.
    pub(super) fn new(maze: Maze, width: u32, top: i32) -> Self {
        let units = maze.columns() as f64 * SCALE;
        let scale = 2.0 * (f64::from(width) / units / 2.0).floor().max(1.0);
        Self { maze, scale, top }
    }

    /// Width and height of the picture in pixels.
    pub(super) fn size(self) -> (u32, u32) {
        let side = |cells: usize| (cells as f64 * SCALE * self.scale).round() as u32;
        (side(self.maze.columns()), side(self.maze.rows()) + self.top as u32)
    }

    /// The pixel of a place.
    pub(super) fn pixel(self, [x, y]: [f64; 2]) -> (i32, i32) {
        // The middle of the first cell is one cell before the origin.
        let right = (x + 1.5 * SCALE) * self.scale;
        let up = (y + 1.5 * SCALE) * self.scale;
        (right.round() as i32, self.size().1 as i32 - up.round() as i32)
    }

    /// A length in pixels, at least one.
    pub(super) fn pixels(self, length: f64) -> i32 {
        ((length * self.scale).round() as i32).max(1)
    }

    pub(super) fn draw_walls<Backend: DrawingBackend>(
        self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        for [[left, low], [right, high]] in self.maze.walls() {
            let corners = [self.pixel([left, high]), self.pixel([right, low])];
            area.draw(&Rectangle::new(corners, WALL.filled()))?;
        }
        Ok(())
    }

    /// The places that count as the goal.
    pub(super) fn draw_goal<Backend: DrawingBackend>(
        self,
        area: &DrawingArea<Backend, Shift>,
        goal: [f64; 2],
    ) -> Drawn<Backend> {
        area.draw(&Circle::new(self.pixel(goal), self.pixels(0.5), GOAL.filled()))
    }
}
