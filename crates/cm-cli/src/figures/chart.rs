//! Curves over training, with the spread over seeds as a band.

use std::path::Path;

use cm_draw::{Drawing, Drawn, Error, PALETTE, label, save, text, ticks};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// A curve.
pub(crate) struct Curve {
    /// In the legend.
    pub(crate) name: String,
    /// x, y, and how far the band reaches above and below.
    pub(crate) points: Vec<[f64; 3]>,
}

/// What a chart shows.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_label: &'a str,
    pub(crate) y_label: &'a str,
    /// From the data if absent.
    pub(crate) y_range: Option<(f64, f64)>,
    pub(crate) curves: &'a [Curve],
}

/// Of the curves alone.
const SIZE: (i32, i32) = (620, 374);
const LEFT: i32 = 70;
const TOP: i32 = 44;
const BOTTOM: i32 = 62;

impl Chart<'_> {
    /// Writes a png or an svg, as the file's extension says.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        // So wide that no name is cut off.
        let longest = self.curves.iter().map(|curve| curve.name.chars().count() as i32).max();
        let right = (56 + 9 * longest.unwrap_or(0)).max(170);
        let size = (LEFT + SIZE.0 + right, TOP + SIZE.1 + BOTTOM);
        save(file, (size.0 as u32, size.1 as u32), self)
    }
}

impl Drawing for Chart<'_> {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
        area.fill(&WHITE)?;
        area.draw(&Text::new(self.title, (LEFT, 14), text(18, HPos::Left, VPos::Top)))?;
        let (x_range, y_range) = (self.x_range(), self.y_range());
        let (width, height) = SIZE;
        let share =
            |value: f64, (low, high): (f64, f64)| ((value - low) / (high - low)).clamp(0.0, 1.0);
        let pixel = |x: f64, y: f64| {
            let across = (share(x, x_range) * f64::from(width)).round() as i32;
            let up = (share(y, y_range) * f64::from(height)).round() as i32;
            (LEFT + across, TOP + height - up)
        };
        self.draw_axes(area, x_range, y_range, pixel)?;
        for (index, curve) in self.curves.iter().enumerate() {
            let colour = PALETTE[index % PALETTE.len()];
            if curve.points.iter().any(|point| point[2] > 0.0) {
                let upper = curve.points.iter().map(|&[x, y, error]| pixel(x, y + error));
                let lower = curve.points.iter().rev().map(|&[x, y, error]| pixel(x, y - error));
                area.draw(&Polygon::new(
                    upper.chain(lower).collect::<Vec<_>>(),
                    colour.mix(0.2).filled(),
                ))?;
            }
            let line: Vec<_> = curve.points.iter().map(|&[x, y, _]| pixel(x, y)).collect();
            if let [only] = line[..] {
                area.draw(&Circle::new(only, 4, colour.filled()))?;
            }
            draw_line(area, index, line, 2)?;
            let step = (height / self.curves.len() as i32).clamp(1, 24);
            let (x, y) = (LEFT + width + 16, TOP + 14 + step * index as i32);
            draw_line(area, index, vec![(x, y), (x + 24, y)], 3)?;
            area.draw(&Text::new(
                curve.name.as_str(),
                (x + 32, y),
                text(15, HPos::Left, VPos::Center),
            ))?;
        }
        Ok(())
    }
}

impl Chart<'_> {
    fn draw_axes<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        x_range: (f64, f64),
        y_range: (f64, f64),
        pixel: impl Fn(f64, f64) -> (i32, i32),
    ) -> Drawn<DB> {
        let (left_bottom, right_top) = (pixel(x_range.0, y_range.0), pixel(x_range.1, y_range.1));
        for tick in ticks(y_range.0, y_range.1, 5.0) {
            let (_, y) = pixel(x_range.0, tick);
            area.draw(&PathElement::new([(LEFT, y), (right_top.0, y)], BLACK.mix(0.12)))?;
            area.draw(&Text::new(label(tick), (LEFT - 8, y), text(14, HPos::Right, VPos::Center)))?;
        }
        for tick in ticks(x_range.0, x_range.1, 6.0) {
            let (x, _) = pixel(tick, y_range.0);
            area.draw(&PathElement::new([(x, left_bottom.1), (x, left_bottom.1 + 4)], BLACK))?;
            area.draw(&Text::new(
                label(tick),
                (x, left_bottom.1 + 8),
                text(14, HPos::Center, VPos::Top),
            ))?;
        }
        let corner = (left_bottom.0, right_top.1);
        area.draw(&PathElement::new([corner, left_bottom, (right_top.0, left_bottom.1)], BLACK))?;
        let middle = ((left_bottom.0 + right_top.0) / 2, (left_bottom.1 + right_top.1) / 2);
        let below = text(15, HPos::Center, VPos::Top);
        area.draw(&Text::new(self.x_label, (middle.0, left_bottom.1 + 32), below))?;
        let upwards = text(15, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
        area.draw(&Text::new(self.y_label, (12, middle.1), upwards))
    }

    fn x_range(&self) -> (f64, f64) {
        let xs = || self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point[0]));
        widened(xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max))
    }

    fn y_range(&self) -> (f64, f64) {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        self.y_range.unwrap_or_else(|| {
            let low = points().map(|point| point[1] - point[2]).fold(f64::INFINITY, f64::min);
            let high = points().map(|point| point[1] + point[2]).fold(f64::NEG_INFINITY, f64::max);
            widened(low, high)
        })
    }
}

/// The line of a curve: after as many as there are colours they are dashed, after twice as many in
/// short dashes.
fn draw_line<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    index: usize,
    line: Vec<(i32, i32)>,
    width: u32,
) -> Drawn<DB> {
    let style = PALETTE[index % PALETTE.len()].stroke_width(width);
    match index / PALETTE.len() {
        0 => area.draw(&PathElement::new(line, style)),
        1 => area.draw(&DashedPathElement::new(line, 8, 4, style)),
        _ => area.draw(&DashedPathElement::new(line, 3, 3, style)),
    }
}

/// A range that is not empty.
fn widened(low: f64, high: f64) -> (f64, f64) {
    if !(low <= high && low.is_finite() && high.is_finite()) {
        (0.0, 1.0)
    } else if low == high {
        (low - 0.5, high + 0.5)
    } else {
        (low, high)
    }
}
