//! A map: places coloured by a number, goals as stars, paths over them.

use std::path::Path;

use cm_draw::{Drawing, Drawn, Error, colour, colour_scale, label, save, star, text, ticks};
use cm_train::Calibration;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::Frame;

/// What a map shows.
pub(crate) struct Map<'a> {
    /// Above the map.
    pub(crate) title: &'a str,
    /// The places.
    pub(crate) places: &'a [[f32; 2]],
    /// The learned distance from each to the goal; grey without.
    pub(crate) values: Option<&'a [f32]>,
    /// What distances are in steps.
    pub(crate) steps: Option<&'a Calibration>,
    /// Thin lines under the paths: links of a road map.
    pub(crate) roads: &'a [[[f32; 2]; 2]],
    /// What stands in the way: rectangles, by their lower left and upper right corners.
    pub(crate) walls: &'a [[[f32; 2]; 2]],
    /// Stars.
    pub(crate) goals: &'a [[f32; 2]],
    /// Lines from a dot, in the order they are walked.
    pub(crate) paths: &'a [Vec<[f32; 2]>],
}

const SIZE: (i32, i32) = (640, 620);
const LEFT: i32 = 56;
const TOP: i32 = 44;
const BOTTOM: i32 = 84;
const STAR: i32 = 12;
/// Places without a number.
const NO_WAY: RGBColor = RGBColor(205, 205, 205);
/// Walls, and links of a road map.
const WALL: RGBColor = RGBColor(236, 236, 232);
const ROAD: RGBColor = RGBColor(170, 190, 215);
/// Paths, and a halo that sets them off from any colour below.
const PATH: RGBColor = RGBColor(200, 0, 60);

impl Map<'_> {
    /// Writes a png or an svg, as the file's extension says.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Error> {
        let frame = self.frame();
        let right = if self.values.is_some() { 120 } else { 24 };
        let size = (LEFT + frame.width().max(320) + right, TOP + frame.height() + BOTTOM);
        let size = (size.0 as u32, size.1 as u32);
        save(file, size, self)
    }

    fn frame(&self) -> Frame {
        let all = self.places.iter().chain(self.goals).chain(self.paths.iter().flatten());
        Frame::around(all, (LEFT, TOP), SIZE)
    }
}

impl Drawing for Map<'_> {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
        let frame = self.frame();
        area.fill(&WHITE)?;
        // Walls stand around the frame as well, below everything else.
        for &[low, high] in self.walls {
            let corners = [frame.pixel(low), frame.pixel(high)];
            area.draw(&Rectangle::new(corners, WALL.filled()))?;
        }
        area.draw(&Text::new(self.title, (LEFT, 14), text(18, HPos::Left, VPos::Top)))?;
        frame.draw_axes(area)?;
        for ends in self.roads {
            area.draw(&PathElement::new(ends.map(|end| frame.pixel(end)).to_vec(), ROAD))?;
        }
        let (low, high) = self.range();
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        if let Some(values) = self.values {
            // The far ones first, so that near ones are not hidden where paths cross.
            order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        }
        for index in order {
            let shade = match self.values {
                Some(values) if values[index].is_infinite() => NO_WAY,
                Some(values) => {
                    colour(f64::from((values[index] - low) / (high - low).max(f32::MIN_POSITIVE)))
                }
                None => NO_WAY,
            };
            area.draw(&Circle::new(frame.pixel(self.places[index]), 2, shade.filled()))?;
        }
        for path in self.paths {
            let line: Vec<_> = path.iter().map(|&place| frame.pixel(place)).collect();
            area.draw(&PathElement::new(line.clone(), WHITE.mix(0.9).stroke_width(5)))?;
            area.draw(&PathElement::new(line.clone(), PATH.stroke_width(2)))?;
            if let Some(&start) = line.first() {
                area.draw(&Circle::new(start, 6, WHITE.filled()))?;
                area.draw(&Circle::new(start, 4, PATH.filled()))?;
            }
        }
        for &goal in self.goals {
            star(area, frame.pixel(goal), STAR)?;
        }
        if self.values.is_some() {
            let left_top = (LEFT + frame.width() + 20, TOP);
            let range = (f64::from(low), f64::from(high));
            colour_scale(area, left_top, frame.height(), range, "learned distance to the goal")?;
        }
        self.draw_legend(area, frame)
    }
}

impl Map<'_> {
    fn range(&self) -> (f32, f32) {
        let finite =
            || self.values.into_iter().flatten().copied().filter(|value| value.is_finite());
        let (low, high) =
            (finite().fold(f32::INFINITY, f32::min), finite().fold(f32::NEG_INFINITY, f32::max));
        if low < high { (low, high) } else { (low.min(0.0), low.min(0.0) + 1.0) }
    }

    /// The steps of some distances on the map: `2 about 11 (8 to 15), 4 about 30 (21 to 40)`.
    fn some_steps(&self, steps: &Calibration) -> String {
        let (low, high) = self.range();
        let told = ticks(f64::from(low), f64::from(high), 4.0).into_iter().filter_map(|tick| {
            let found = steps.steps(tick as f32).filter(|_| tick > 0.0)?;
            let (about, low, high) = (found.about, found.low, found.high);
            Some(format!("{} about {about:.0} ({low:.0} to {high:.0})", label(tick)))
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn draw_legend<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        frame: Frame,
    ) -> Drawn<DB> {
        let y = TOP + frame.height() + 52;
        let mut x = LEFT + 10;
        if !self.goals.is_empty() {
            star(area, (x, y), STAR)?;
            area.draw(&Text::new("goal", (x + STAR + 8, y), text(14, HPos::Left, VPos::Center)))?;
            x += 94;
        }
        if let Some(steps) = self.steps {
            let line = format!("nats in steps: {}", self.some_steps(steps));
            let below = (LEFT + 10, y + 22);
            area.draw(&Text::new(line, below, text(14, HPos::Left, VPos::Center)))?;
        }
        if !self.paths.is_empty() {
            area.draw(&PathElement::new([(x, y), (x + 26, y)], PATH.stroke_width(2)))?;
            area.draw(&Circle::new((x, y), 4, PATH.filled()))?;
            area.draw(&Text::new(
                "path from its start",
                (x + 34, y),
                text(14, HPos::Left, VPos::Center),
            ))?;
        }
        Ok(())
    }
}
