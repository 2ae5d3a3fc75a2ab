//! The world of the 2-D experiment: its paths in colours, with the direction they run in (the
//! paper, Figure 2).

use std::path::Path as FilePath;

use cm_draw::{Drawing, Drawn, Error, PALETTE, save, text};
use cm_envs::point_maze::{Path, PointMaze};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::Frame;

/// The paths of a world.
pub(crate) struct DataFigure<'a>(pub(crate) &'a PointMaze);

const LEFT: i32 = 48;
const TOP: i32 = 44;
/// Paths of a kind that are drawn.
const DRAWN: usize = 10;

impl DataFigure<'_> {
    /// Writes a png or an svg, as the file's extension says.
    pub(crate) fn save(&self, file: &FilePath) -> Result<(), Error> {
        let frame = self.frame();
        let size = ((LEFT + frame.width() + 24) as u32, (TOP + frame.height() + 40) as u32);
        save(file, size, self)
    }

    fn frame(&self) -> Frame {
        let places = self.0.paths().iter().flat_map(|path| &path.points);
        Frame::around(places, (LEFT, TOP), (640, 620))
    }
}

impl Drawing for DataFigure<'_> {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn<DB> {
        let frame = self.frame();
        area.fill(&WHITE)?;
        let title = "Paths of the world; arrows show which way they run";
        area.draw(&Text::new(title, (LEFT, 14), text(18, HPos::Left, VPos::Top)))?;
        frame.draw_axes(area)?;
        let kinds: Vec<Vec<&Path>> = (0..self.0.kinds())
            .map(|kind| self.0.paths().iter().filter(|path| path.kind == kind).collect())
            .collect();
        for (kind, paths) in kinds.iter().enumerate() {
            let colour = PALETTE[kind % PALETTE.len()];
            for path in paths.iter().take(DRAWN) {
                let line: Vec<_> = path.points.iter().map(|&point| frame.pixel(point)).collect();
                area.draw(&PathElement::new(line, colour.mix(0.6)))?;
            }
        }
        // Arrows over everything, each on its first path.
        for (kind, paths) in kinds.iter().enumerate() {
            let Some(path) = paths.first() else { continue };
            for share in [0.3, 0.7] {
                draw_arrow(area, frame, path, share, PALETTE[kind % PALETTE.len()])?;
            }
        }
        Ok(())
    }
}

/// An arrow head at a share of a path's points, along its way.
fn draw_arrow<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    frame: Frame,
    path: &Path,
    share: f32,
    colour: RGBColor,
) -> Drawn<DB> {
    /// Points of the path that the direction is taken over.
    const SPAN: usize = 24;
    let last = path.points.len() - 1;
    let at = (share * last as f32) as usize;
    let (tail, head) = (
        frame.pixel(path.points[at.saturating_sub(SPAN)]),
        frame.pixel(path.points[(at + SPAN).min(last)]),
    );
    let along = (f64::from(head.0 - tail.0), f64::from(head.1 - tail.1));
    let length = along.0.hypot(along.1).max(1.0);
    let (x, y) = (along.0 / length, along.1 / length);
    let (centre_x, centre_y) = frame.pixel(path.points[at]);
    let corners = |size: f64| -> Vec<(i32, i32)> {
        [(1.6, 0.0), (-1.0, 1.1), (-0.5, 0.0), (-1.0, -1.1)]
            .iter()
            .map(|(forward, aside)| {
                let dx = size * (forward * x - aside * y);
                let dy = size * (forward * y + aside * x);
                (centre_x + dx.round() as i32, centre_y + dy.round() as i32)
            })
            .collect()
    };
    area.draw(&Polygon::new(corners(13.0), WHITE.filled()))?;
    area.draw(&Polygon::new(corners(10.0), colour.filled()))
}
