//! A star and a colour scale.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::{Drawn, colour, label, text, ticks};

/// A five-pointed star, white with a black edge.
pub fn star<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    middle: (i32, i32),
    radius: i32,
) -> Drawn<DB> {
    let corner = |index: i32| {
        let length = f64::from(radius) * if index % 2 == 0 { 1.0 } else { 0.42 };
        let angle = f64::from(index) * std::f64::consts::PI / 5.0;
        let offset = (length * angle.sin(), -length * angle.cos());
        (middle.0 + offset.0.round() as i32, middle.1 + offset.1.round() as i32)
    };
    area.draw(&Polygon::new((0..10).map(corner).collect::<Vec<_>>(), WHITE.filled()))?;
    area.draw(&PathElement::new((0..=10).map(corner).collect::<Vec<_>>(), BLACK.stroke_width(2)))
}

/// Pixels across that a [`colour_scale`] needs, its numbers and title included.
pub const COLOUR_SCALE_WIDTH: i32 = 96;

/// A bar of the colours of [`colour`] from `low` at its bottom to `high` at its top, with numbers
/// and a title to its right. `left_top` is its corner.
pub fn colour_scale<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    left_top: (i32, i32),
    height: i32,
    (low, high): (f64, f64),
    title: &str,
) -> Drawn<DB> {
    const BAR: i32 = 20;
    let (left, top) = left_top;
    let right = left + BAR;
    for row in 0..height {
        let fraction = 1.0 - f64::from(row) / f64::from((height - 1).max(1));
        let corners = [(left, top + row), (right, top + row + 1)];
        area.draw(&Rectangle::new(corners, colour(fraction).filled()))?;
    }
    area.draw(&Rectangle::new([left_top, (right, top + height)], BLACK))?;
    let beside = text(14, HPos::Left, VPos::Center);
    for tick in ticks(low, high, 6.0) {
        let y = top + height - ((tick - low) / (high - low) * f64::from(height)).round() as i32;
        area.draw(&PathElement::new([(right, y), (right + 4, y)], BLACK))?;
        area.draw(&Text::new(label(tick), (right + 8, y), beside.clone()))?;
    }
    let upwards = text(14, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
    area.draw(&Text::new(title, (right + 60, top + height / 2), upwards))
}
