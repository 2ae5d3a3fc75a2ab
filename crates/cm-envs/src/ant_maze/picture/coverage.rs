//! Where in a maze data has been.

use std::path::Path;

use cm_draw::{Drawing, Drawn, colour};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::frame::Frame;
use crate::Error;
use crate::ant_maze::{Maze, SCALE};

/// How often each spot of a maze was visited, in squares of half a unit.
///
/// ```
/// use cm_envs::ant_maze::{Coverage, Maze};
///
/// let mut coverage = Coverage::new(Maze::Umaze);
/// coverage.visit([0.2, 0.1]);
/// coverage.visit([8.0, 0.0]);
/// assert!((coverage.share() - 2.0 / 448.0).abs() < 1e-12); // 7 free cells of 64 squares
/// coverage.save(std::env::temp_dir().join("coverage.png"), "Two visits")?;
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Coverage {
    maze: Maze,
    columns: usize,
    counts: Vec<u64>,
}

/// The side of a square.
const SIDE: f64 = 0.5;
/// Squares along a cell.
const PER_CELL: usize = (SCALE / SIDE) as usize;

impl Coverage {
    /// Of a maze that nobody has visited yet.
    pub fn new(maze: Maze) -> Self {
        let columns = maze.columns() * PER_CELL;
        Self { maze, columns, counts: vec![0; columns * maze.rows() * PER_CELL] }
    }

    /// Counts a visit; places outside the maze do not count.
    pub fn visit(&mut self, place: [f32; 2]) {
        let [column, row] = place.map(|x| ((f64::from(x) + 1.5 * SCALE) / SIDE).floor());
        let inside = row >= 0.0 && column >= 0.0 && column < self.columns as f64;
        if inside
            && let Some(count) = self.counts.get_mut(row as usize * self.columns + column as usize)
        {
            *count += 1;
        }
    }

    /// The share of the squares of the free cells that were visited.
    pub fn share(&self) -> f64 {
        let mut visited = 0;
        let free = self.maze.free_cells();
        for cell in &free {
            for row in cell.row * PER_CELL..(cell.row + 1) * PER_CELL {
                let start = row * self.columns + cell.column * PER_CELL;
                let squares = &self.counts[start..start + PER_CELL];
                visited += squares.iter().filter(|&&count| count > 0).count();
            }
        }
        visited as f64 / (free.len() * PER_CELL * PER_CELL) as f64
    }

    /// Draws the squares, lighter for more visits on a logarithmic scale, as PNG or SVG, as the
    /// extension says.
    pub fn save(&self, path: impl AsRef<Path>, title: &str) -> Result<(), Error> {
        let picture = Titled { coverage: self, title };
        Ok(cm_draw::save(path.as_ref(), self.frame().size(), &picture)?)
    }

    fn frame(&self) -> Frame {
        Frame::new(self.maze, 800, 40)
    }
}

/// A picture with its headline.
struct Titled<'a> {
    coverage: &'a Coverage,
    title: &'a str,
}

impl Drawing for Titled<'_> {
    fn draw<Backend: DrawingBackend>(&self, area: &DrawingArea<Backend, Shift>) -> Drawn<Backend> {
        let Coverage { columns, counts, .. } = self.coverage;
        let frame = self.coverage.frame();
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title, (10, 10), ("sans-serif", 20)))?;
        frame.draw_walls(area)?;
        let largest = counts.iter().copied().max().unwrap_or(0).max(1);
        let scale = ((largest + 1) as f64).ln();
        for (index, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let corner =
                [index % columns, index / columns].map(|square| square as f64 * SIDE - 1.5 * SCALE);
            let opposite = corner.map(|x| x + SIDE);
            let corners = [frame.pixel(corner), frame.pixel(opposite)];
            let shade = colour(((count + 1) as f64).ln() / scale);
            area.draw(&Rectangle::new(corners, shade.filled()))?;
        }
        Ok(())
    }
}
