//! A number for every cell of a grid as a picture.

mod cells;
mod legend;

use std::path::Path;

use cm_draw::{COLOUR_SCALE_WIDTH, Drawing, Drawn, star};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::grid::Grid;
use crate::Error;
use crate::error::check_index;

/// A heat map of a grid: walls are black, colours go from dark (0) to light (the largest finite
/// value), cells of infinite value are grey and crossed out.
///
/// ```
/// use cm_envs::tabular::{Discount, Grid, GridRules, HeatMap};
///
/// let grid = Grid::parse("A.#\n.~>\n..B", &GridRules { slip: 0.2, ..GridRules::default() })?;
/// let (a, b) = (grid.marked('A')[0], grid.marked('B')[0]);
/// let reaching = grid.process().reach(b, Discount::new(0.9)?)?;
/// let path = reaching.greedy_path(grid.process(), a)?.unwrap_or_default();
/// let picture = HeatMap {
///     grid: &grid,
///     values: reaching.distances(),
///     title: "Successor distance to the star",
///     scale: "successor distance (nats)",
///     center: b,
///     path: &path,
/// };
/// picture.save(std::env::temp_dir().join("successor-distance.svg"))?; // or .png
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeatMap<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// One number per state, not negative.
    pub values: &'a [f64],
    /// Headline.
    pub title: &'a str,
    /// What the colours stand for, with the unit.
    pub scale: &'a str,
    /// The state that the values are measured to or from, drawn as a star.
    pub center: usize,
    /// States to join by a line with arrows; may be empty.
    pub path: &'a [usize],
}

const LEFT: i32 = 64;
const TOP: i32 = 56;
const BAR_GAP: i32 = 28;
const RIGHT: i32 = 24;
const BOTTOM: i32 = 56;
const LEGEND_ROW: i32 = 26;
const PATH: RGBColor = RGBColor(230, 85, 13);
const UNREACHABLE: RGBColor = RGBColor(200, 200, 200);
const WALL: RGBColor = RGBColor(20, 20, 20);

impl HeatMap<'_> {
    /// Writes the picture as PNG or SVG, as the extension says. A file already there is replaced at
    /// once or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.check()?;
        let height = TOP + self.height() + BOTTOM + self.legend_rows() * LEGEND_ROW;
        let size = (self.picture_width() as u32, height as u32);
        Ok(cm_draw::save(path.as_ref(), size, self)?)
    }

    fn check(&self) -> Result<(), Error> {
        let states = self.grid.process().states();
        if self.values.len() != states {
            let found = self.values.len();
            return Err(Error::Length { what: "heat map, values".into(), expected: states, found });
        }
        for (state, &found) in self.values.iter().enumerate() {
            if found.is_nan() || found < 0.0 {
                return Err(Error::Value { what: format!("heat map, state {state}"), found });
            }
        }
        check_index(|| "heat map, center".into(), self.center, states)?;
        self.path
            .iter()
            .try_for_each(|&state| check_index(|| "heat map, path".into(), state, states))
    }

    /// Side of a cell in pixels.
    fn side(&self) -> i32 {
        (720 / self.grid.width().max(self.grid.height()).max(1) as i32).clamp(4, 56)
    }

    fn picture_width(&self) -> i32 {
        let title = LEFT + 11 * self.title.chars().count() as i32;
        (LEFT + self.width() + BAR_GAP + COLOUR_SCALE_WIDTH + RIGHT).max(title).max(480)
    }

    fn width(&self) -> i32 {
        self.side() * self.grid.width() as i32
    }

    fn height(&self) -> i32 {
        self.side() * self.grid.height() as i32
    }

    /// The largest finite value, or 1 if all are zero.
    fn largest(&self) -> f64 {
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        let largest = finite.fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }
}

impl Drawing for HeatMap<'_> {
    fn draw<Backend: DrawingBackend>(&self, area: &DrawingArea<Backend, Shift>) -> Drawn<Backend> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title, (LEFT, 18), ("sans-serif", 22)))?;
        self.draw_cells(area)?;
        self.draw_path(area)?;
        star(area, self.middle(self.center), (self.side() * 2 / 5).max(8))?;
        self.draw_axes(area)?;
        self.draw_scale(area)?;
        self.draw_legend(area)
    }
}
