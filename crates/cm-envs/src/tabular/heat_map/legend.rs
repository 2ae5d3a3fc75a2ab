//! What lies around the grid: line and column numbers, the colour scale and the legend.

use cm_draw::{Drawn, colour_scale, star, text};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::cells::draw_cross;
use super::{BAR_GAP, HeatMap, LEFT, LEGEND_ROW, PATH, TOP, UNREACHABLE, WALL};
use crate::tabular::grid::Cell;

impl HeatMap<'_> {
    pub(super) fn draw_axes<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        let (side, bottom) = (self.side(), TOP + self.height());
        let below = text(14, HPos::Center, VPos::Top);
        let beside = text(14, HPos::Right, VPos::Center);
        // Every number where there is room, else every fifth, tenth, ...
        let every = [1, 2, 5, 10, 20, 50, 100].into_iter().find(|every| every * side >= 28);
        let every = every.unwrap_or(200) as usize;
        for column in (0..self.grid.width()).step_by(every) {
            let x = LEFT + column as i32 * side + side / 2;
            area.draw(&Text::new(column.to_string(), (x, bottom + 6), below.clone()))?;
        }
        for line in (0..self.grid.height()).step_by(every) {
            let y = TOP + line as i32 * side + side / 2;
            area.draw(&Text::new(line.to_string(), (LEFT - 8, y), beside.clone()))?;
        }
        let middle = (LEFT + self.width() / 2, TOP + self.height() / 2);
        area.draw(&Text::new("column", (middle.0, bottom + 24), below))?;
        let upwards = text(14, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
        area.draw(&Text::new("line", (14, middle.1), upwards))
    }

    pub(super) fn draw_scale<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        let left_top = (LEFT + self.width() + BAR_GAP, TOP);
        colour_scale(area, left_top, self.height(), (0.0, self.largest()), self.scale)
    }

    /// One entry for everything that is in the picture, in rows that fit its width.
    pub(super) fn draw_legend<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
    ) -> Drawn<Backend> {
        let beside = text(14, HPos::Left, VPos::Center);
        for (entry, (row, x)) in self.entries().into_iter().zip(self.entry_places()) {
            let y = TOP + self.height() + 62 + row * LEGEND_ROW;
            self.draw_key(area, entry, (x, y))?;
            area.draw(&Text::new(entry.text(), (x + 24, y), beside.clone()))?;
        }
        Ok(())
    }

    /// Number of rows the legend takes.
    pub(super) fn legend_rows(&self) -> i32 {
        self.entry_places().last().map_or(0, |&(row, _)| row + 1)
    }

    /// Row and left edge of each entry.
    fn entry_places(&self) -> Vec<(i32, i32)> {
        let (mut row, mut x) = (0, LEFT);
        let places = self.entries().into_iter().map(|entry| {
            let width = 32 + 8 * entry.text().len() as i32;
            if x + width > self.picture_width() && x > LEFT {
                (row, x) = (row + 1, LEFT);
            }
            x += width;
            (row, x - width)
        });
        places.collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![Entry::Star];
        if !self.path.is_empty() {
            entries.push(Entry::Path);
        }
        if self.values.contains(&f64::INFINITY) {
            entries.push(Entry::Unreachable);
        }
        // One for each kind of cell, whatever its letter or direction.
        let mut kinds = Vec::new();
        for &cell in self.grid.cells() {
            let kind = std::mem::discriminant(&cell);
            if !matches!(cell, Cell::Floor | Cell::Named(_)) && !kinds.contains(&kind) {
                kinds.push(kind);
                entries.push(Entry::Cell(cell));
            }
        }
        entries
    }

    fn draw_key<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
        entry: Entry,
        (x, y): (i32, i32),
    ) -> Drawn<Backend> {
        let square = |fill: RGBColor| Rectangle::new([(x, y - 8), (x + 16, y + 8)], fill.filled());
        match entry {
            Entry::Star => star(area, (x + 8, y), 9),
            Entry::Path => {
                area.draw(&PathElement::new([(x, y), (x + 18, y)], PATH.stroke_width(4)))?;
                area.draw(&Circle::new((x + 3, y), 5, PATH.filled()))
            }
            Entry::Unreachable => {
                area.draw(&square(UNREACHABLE))?;
                draw_cross(area, (x, y - 8), 16)
            }
            Entry::Cell(Cell::Wall) => area.draw(&square(WALL)),
            Entry::Cell(cell) => self.draw_symbol(area, (x + 8, y), 22, cell, BLACK),
        }
    }
}

#[derive(Clone, Copy)]
enum Entry {
    Star,
    Path,
    Unreachable,
    Cell(Cell),
}

impl Entry {
    fn text(self) -> &'static str {
        match self {
            Self::Star => "zero",
            Self::Path => "greedy path",
            Self::Unreachable => "unreachable",
            Self::Cell(Cell::Wall) => "wall",
            Self::Cell(Cell::Door(_)) => "one-way door",
            Self::Cell(Cell::Slippery) => "slippery",
            Self::Cell(Cell::Windy) => "wind",
            Self::Cell(Cell::Teleporter(_)) => "teleporter",
            Self::Cell(Cell::Absorbing) => "absorbing",
            Self::Cell(Cell::Floor | Cell::Named(_)) => "floor",
        }
    }
}
