//! Pictures: maps of the plane, curves over training, the data of the 2-D experiment.

mod bars;
mod chart;
mod data;
mod map;

pub(crate) use bars::{Bars, Group};
pub(crate) use chart::{Chart, Curve};
pub(crate) use data::DataFigure;
pub(crate) use map::Map;

use cm_draw::{Drawn, label, text, ticks};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// The plane of a picture: which part of the world goes to which pixels, one unit as long in both
/// directions.
#[derive(Clone, Copy, Debug)]
struct Frame {
    low: [f32; 2],
    high: [f32; 2],
    left: i32,
    top: i32,
    scale: f32,
}

impl Frame {
    /// Room for `places` with a margin, `width` pixels wide at the most and `height` high.
    fn around<'a>(
        places: impl Iterator<Item = &'a [f32; 2]> + Clone,
        (left, top): (i32, i32),
        (width, height): (i32, i32),
    ) -> Self {
        let bound = |axis: usize, pick: fn(f32, f32) -> f32, start: f32| {
            places
                .clone()
                .map(|place| place[axis])
                .filter(|number| number.is_finite())
                .fold(start, pick)
        };
        let side = |axis: usize| {
            let (low, high) =
                (bound(axis, f32::min, f32::INFINITY), bound(axis, f32::max, f32::NEG_INFINITY));
            if low > high {
                return (-1.0, 1.0);
            }
            let margin = ((high - low) * 0.04).max(1e-3);
            (low - margin, high + margin)
        };
        let ((x_low, x_high), (y_low, y_high)) = (side(0), side(1));
        let scale = (width as f32 / (x_high - x_low)).min(height as f32 / (y_high - y_low));
        Self { low: [x_low, y_low], high: [x_high, y_high], left, top, scale }
    }

    fn width(&self) -> i32 {
        ((self.high[0] - self.low[0]) * self.scale).round() as i32
    }

    fn height(&self) -> i32 {
        ((self.high[1] - self.low[1]) * self.scale).round() as i32
    }

    fn pixel(&self, place: [f32; 2]) -> (i32, i32) {
        let x = self.left + ((place[0] - self.low[0]) * self.scale).round() as i32;
        let y = self.top + ((self.high[1] - place[1]) * self.scale).round() as i32;
        (x, y)
    }

    /// A border with numbers along its left and lower side.
    fn draw_axes<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
        let (left, top) = (self.left, self.top);
        let (right, bottom) = (left + self.width(), top + self.height());
        area.draw(&Rectangle::new([(left, top), (right, bottom)], BLACK.mix(0.5)))?;
        for tick in ticks(f64::from(self.low[0]), f64::from(self.high[0]), 6.0) {
            let (x, _) = self.pixel([tick as f32, self.low[1]]);
            area.draw(&PathElement::new([(x, bottom), (x, bottom + 4)], BLACK))?;
            area.draw(&Text::new(label(tick), (x, bottom + 7), text(14, HPos::Center, VPos::Top)))?;
        }
        for tick in ticks(f64::from(self.low[1]), f64::from(self.high[1]), 6.0) {
            let (_, y) = self.pixel([self.low[0], tick as f32]);
            area.draw(&PathElement::new([(left - 4, y), (left, y)], BLACK))?;
            area.draw(&Text::new(label(tick), (left - 7, y), text(14, HPos::Right, VPos::Center)))?;
        }
        Ok(())
    }
}
