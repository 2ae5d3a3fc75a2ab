//! What lies on the grid: cells, their symbols, the path and the star.

use cm_draw::{Drawn, colour, contrasting};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{HeatMap, LEFT, PATH, TOP, UNREACHABLE, WALL};
use crate::tabular::grid::{Cell, Move};

/// Cells smaller than this are drawn without their symbols.
const SMALLEST_WITH_SYMBOL: i32 = 14;

impl HeatMap<'_> {
    pub(super) fn draw_cells<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        let (side, largest) = (self.side(), self.largest());
        for line in 0..self.grid.height() {
            for (column, &cell) in self.grid.line(line).iter().enumerate() {
                let (x, y) = (LEFT + column as i32 * side, TOP + line as i32 * side);
                let state = self.grid.state_at(line, column);
                let value = state.map(|state| self.values[state]);
                let fill = match value {
                    None => WALL,
                    Some(value) if value.is_finite() => colour(value / largest),
                    Some(_) => UNREACHABLE,
                };
                area.draw(&Rectangle::new([(x, y), (x + side, y + side)], fill.filled()))?;
                if value == Some(f64::INFINITY) {
                    draw_cross(area, (x, y), side)?;
                }
                let covered = state
                    .is_some_and(|state| state == self.center || self.path.first() == Some(&state));
                if side >= SMALLEST_WITH_SYMBOL && !covered {
                    let middle = (x + side / 2, y + side / 2);
                    self.draw_symbol(area, middle, side, cell, contrasting(fill))?;
                }
            }
        }
        Ok(())
    }

    /// The line of the path over a wider one of white, an arrow at each step, a dot at the start.
    pub(super) fn draw_path<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        let points: Vec<(i32, i32)> = self.path.iter().map(|&state| self.middle(state)).collect();
        let Some(&first) = points.first() else { return Ok(()) };
        let side = self.side();
        let thickness = (side / 10).clamp(2, 4) as u32;
        area.draw(&PathElement::new(points.clone(), WHITE.stroke_width(thickness + 3)))?;
        area.draw(&PathElement::new(points.clone(), PATH.stroke_width(thickness)))?;
        if side >= SMALLEST_WITH_SYMBOL {
            for step in points.windows(2) {
                draw_arrow(area, step[0], step[1], side / 6)?;
            }
        }
        area.draw(&Circle::new(first, (side / 5).max(4) + 2, WHITE.filled()))?;
        area.draw(&Circle::new(first, (side / 5).max(4), PATH.filled()))
    }

    /// Doors as triangles, the wind as an arrow, everything else as its symbol in the layout.
    pub(super) fn draw_symbol<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
        (x, y): (i32, i32),
        side: i32,
        cell: Cell,
        colour: RGBColor,
    ) -> Drawn<Backend> {
        // Points given along a direction and across it.
        let turned = |direction: Move, along: i32, across: i32| match direction {
            Move::North => (x + across, y - along),
            Move::East | Move::Stay => (x + along, y + across),
            Move::South => (x - across, y + along),
            Move::West => (x - along, y - across),
        };
        match cell {
            Cell::Wall | Cell::Floor => Ok(()),
            Cell::Door(direction) => {
                let size = side / 3;
                let corners = [(size, 0), (-size, size), (-size, -size), (size, 0)];
                let corners = corners.map(|(along, across)| turned(direction, along, across));
                area.draw(&PathElement::new(corners.to_vec(), colour.stroke_width(2)))
            }
            Cell::Windy => {
                let direction = self.grid.wind_direction().unwrap_or(Move::Stay);
                let (size, head) = (side / 4, side / 8);
                for points in [
                    [(-size, 0), (size, 0)],
                    [(size - head, -head), (size, 0)],
                    [(size - head, head), (size, 0)],
                ] {
                    let points = points.map(|(along, across)| turned(direction, along, across));
                    area.draw(&PathElement::new(points.to_vec(), colour.stroke_width(1)))?;
                }
                Ok(())
            }
            _ => {
                let style = ("sans-serif", f64::from(side) * 0.6).into_font().color(&colour);
                let style = style.pos(Pos::new(HPos::Center, VPos::Center));
                area.draw(&Text::new(cell.symbol().to_string(), (x, y), style))
            }
        }
    }

    /// The middle of a state's cell.
    pub(super) fn middle(&self, state: usize) -> (i32, i32) {
        let ((line, column), side) = (self.grid.cell_of(state), self.side());
        (LEFT + column as i32 * side + side / 2, TOP + line as i32 * side + side / 2)
    }
}

pub(super) fn draw_cross<Backend: DrawingBackend>(
    area: &DrawingArea<Backend, Shift>,
    (x, y): (i32, i32),
    side: i32,
) -> Drawn<Backend> {
    let (near, far) = (side / 4, side - side / 4);
    let grey = RGBColor(120, 120, 120);
    area.draw(&PathElement::new([(x + near, y + near), (x + far, y + far)], grey))?;
    area.draw(&PathElement::new([(x + near, y + far), (x + far, y + near)], grey))
}

/// A filled triangle in the middle of a step, pointing along it.
fn draw_arrow<Backend: DrawingBackend>(
    area: &DrawingArea<Backend, Shift>,
    from: (i32, i32),
    to: (i32, i32),
    size: i32,
) -> Drawn<Backend> {
    let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = dx.hypot(dy);
    if length == 0.0 {
        return Ok(());
    }
    let (dx, dy) = (dx / length * f64::from(size), dy / length * f64::from(size));
    let (x, y) = (f64::from(from.0 + to.0) / 2.0, f64::from(from.1 + to.1) / 2.0);
    let corners = [(x + dx, y + dy), (x - dx - dy, y - dy + dx), (x - dx + dy, y - dy - dx)];
    let corners = corners.map(|(x, y)| (x.round() as i32, y.round() as i32));
    area.draw(&Polygon::new(corners.to_vec(), PATH.filled()))
}
