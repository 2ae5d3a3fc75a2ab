//! Bars in groups.

use std::path::Path;

use cm_draw::{Drawing, Drawn, Error, PALETTE, label, save, text, ticks};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Bars that stand together.
pub(crate) struct Group {
    /// Below them.
    pub(crate) name: String,
    /// From 0 to 1.
    pub(crate) heights: Vec<f64>,
}

/// What a chart of bars shows.
pub(crate) struct Bars<'a> {
    pub(crate) title: &'a str,
    pub(crate) y_label: &'a str,
    /// What each bar of a group is, in the legend.
    pub(crate) bars: &'a [String],
    pub(crate) groups: &'a [Group],
}

const SIZE: (i32, i32) = (860, 400);
const LEFT: i32 = 70;
const TOP: i32 = 44;
const RIGHT: i32 = 120;
const BOTTOM: i32 = 50;

impl Bars<'_> {
    /// Writes a png or an svg, as the file's extension says.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        save(file, (SIZE.0 as u32, SIZE.1 as u32), self)
    }
}

impl Drawing for Bars<'_> {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title, (LEFT, 14), text(18, HPos::Left, VPos::Top)))?;
        let (right, bottom) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
        let up = |height: f64| {
            bottom - (height.clamp(0.0, 1.0) * f64::from(bottom - TOP)).round() as i32
        };
        for tick in ticks(0.0, 1.0, 5.0) {
            let y = up(tick);
            area.draw(&PathElement::new([(LEFT, y), (right, y)], BLACK.mix(0.12)))?;
            area.draw(&Text::new(label(tick), (LEFT - 8, y), text(14, HPos::Right, VPos::Center)))?;
        }
        let wide = f64::from(right - LEFT) / self.groups.len().max(1) as f64;
        for (number, group) in self.groups.iter().enumerate() {
            let start = f64::from(LEFT) + wide * number as f64;
            // A fifth of the room is between groups.
            let each = 0.8 * wide / group.heights.len().max(1) as f64;
            for (bar, &height) in group.heights.iter().enumerate() {
                let x = start + 0.1 * wide + each * bar as f64;
                let (from, to) = (x.round() as i32, (x + each).round() as i32 - 1);
                let colour = PALETTE[bar % PALETTE.len()];
                area.draw(&Rectangle::new([(from, up(height)), (to, bottom)], colour.filled()))?;
            }
            let middle = ((start + wide / 2.0).round() as i32, bottom + 8);
            area.draw(&Text::new(group.name.as_str(), middle, text(14, HPos::Center, VPos::Top)))?;
        }
        area.draw(&PathElement::new([(LEFT, TOP), (LEFT, bottom), (right, bottom)], BLACK))?;
        for (bar, name) in self.bars.iter().enumerate() {
            let (x, y) = (right + 16, TOP + 14 + 24 * bar as i32);
            let colour = PALETTE[bar % PALETTE.len()];
            area.draw(&Rectangle::new([(x, y - 6), (x + 12, y + 6)], colour.filled()))?;
            let style = text(14, HPos::Left, VPos::Center);
            area.draw(&Text::new(name.as_str(), (x + 18, y), style))?;
        }
        let upwards = text(15, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
        area.draw(&Text::new(self.y_label, (12, (TOP + bottom) / 2), upwards))
    }
}
