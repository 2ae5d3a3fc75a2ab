//! An episode as an animated GIF.

use std::path::Path;

use cm_draw::Drawn;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::frame::{Frame, GOAL, WALL};
use super::skeleton::legs;
use crate::Error;
use crate::ant_maze::{Maze, STATE};

/// An episode seen from above, as an animated GIF: the ant with its legs, the way it came, and its
/// goal.
///
/// ```
/// use cm_envs::ant_maze::{Animation, Maze, standing};
/// use cm_random::Philox;
///
/// let states: Vec<_> = (0..10).map(|k| standing(&mut Philox::new(1).stream(k, 0))).collect();
/// let animation = Animation { maze: Maze::Umaze, states: &states, goal: [1.0, 8.5], every: 2 };
/// animation.save(std::env::temp_dir().join("ant.gif"))?;
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Animation<'a> {
    /// The maze.
    pub maze: Maze,
    /// The state at every step.
    pub states: &'a [[f64; STATE]],
    /// The goal.
    pub goal: [f64; 2],
    /// Show every how manyth state; each stands for 0.1 s, and the animation runs at four times
    /// that speed.
    pub every: usize,
}

const TRAIL: RGBColor = RGBColor(158, 202, 225);
const LEG: RGBColor = RGBColor(33, 33, 33);
const TORSO: RGBColor = RGBColor(31, 119, 180);
/// All colours there are.
const PALETTE: [RGBColor; 6] = [WHITE, WALL, GOAL, TRAIL, LEG, TORSO];
/// Pixels across, at most.
const WIDTH: u32 = 400;
/// Hundredths of a second that a step is shown.
const DELAY: usize = 3;

impl Animation<'_> {
    /// Writes the animation. A file already there is replaced at once or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |reason| cm_draw::Error::Picture { path: path.into(), reason };
        Ok(cm_files::replace(path, self.encode().map_err(failed)?)?)
    }

    fn encode(&self) -> Result<Vec<u8>, String> {
        if self.states.is_empty() || self.every == 0 {
            return Err(format!(
                "expected states and a number above 0, found {} states, every {}",
                self.states.len(),
                self.every
            ));
        }
        let frame = Frame::new(self.maze, WIDTH, 0);
        let (width, height) = frame.size();
        let palette: Vec<u8> = PALETTE.iter().flat_map(|&RGBColor(r, g, b)| [r, g, b]).collect();
        let mut bytes = Vec::new();
        let failed = |error: gif::EncodingError| error.to_string();
        let mut encoder =
            gif::Encoder::new(&mut bytes, width as u16, height as u16, &palette).map_err(failed)?;
        encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
        // The last state is always shown.
        let last = self.states.len() - 1;
        for step in (0..last).step_by(self.every).chain([last]) {
            let mut pixels = vec![0; width as usize * height as usize * 3];
            {
                let area = BitMapBackend::with_buffer(&mut pixels, (width, height));
                let area = area.into_drawing_area();
                self.draw(&area, frame, step).map_err(|error| error.to_string())?;
                area.present().map_err(|error| error.to_string())?;
            }
            let mut picture = gif::Frame::from_indexed_pixels(
                width as u16,
                height as u16,
                pixels.chunks_exact(3).map(nearest).collect::<Vec<u8>>(),
                None,
            );
            let delay = if step == last { 100 } else { (DELAY * self.every).min(1000) };
            picture.delay = delay as u16;
            encoder.write_frame(&picture).map_err(failed)?;
        }
        drop(encoder);
        Ok(bytes)
    }

    fn draw<Backend: DrawingBackend>(
        &self,
        area: &DrawingArea<Backend, Shift>,
        frame: Frame,
        step: usize,
    ) -> Drawn<Backend> {
        area.fill(&WHITE)?;
        frame.draw_walls(area)?;
        let trail = self.states[..=step].iter().map(|state| frame.pixel([state[0], state[1]]));
        area.draw(&PathElement::new(trail.collect::<Vec<_>>(), TRAIL.stroke_width(2)))?;
        frame.draw_goal(area, self.goal)?;
        for joints in legs(&self.states[step]) {
            let pixels = joints.map(|joint| frame.pixel(joint));
            area.draw(&PathElement::new(pixels, LEG.stroke_width(2)))?;
        }
        let [x, y, ..] = self.states[step];
        area.draw(&Circle::new(frame.pixel([x, y]), frame.pixels(0.25), TORSO.filled()))
    }
}

/// The colour of the palette nearest to a pixel; lines are drawn with soft edges.
fn nearest(pixel: &[u8]) -> u8 {
    let distance = |&RGBColor(r, g, b): &RGBColor| -> u32 {
        [r, g, b].iter().zip(pixel).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    (0..PALETTE.len()).min_by_key(|&index| distance(&PALETTE[index])).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_ant_move() {
        let states: Vec<[f64; STATE]> = (0..7)
            .map(|step| {
                let mut state = [0.0; STATE];
                (state[0], state[3]) = (f64::from(step), 1.0);
                state
            })
            .collect();
        let animation =
            Animation { maze: Maze::Umaze, states: &states, goal: [0.5, 8.5], every: 4 };
        let bytes = animation.encode().unwrap();
        let mut decoder = gif::DecodeOptions::new().read_info(&bytes[..]).unwrap();
        assert_eq!((decoder.width(), decoder.height()), (400, 400));
        let frame = Frame::new(Maze::Umaze, WIDTH, 0);
        let mut steps = Vec::new();
        while let Some(picture) = decoder.read_next_frame().unwrap() {
            let at = |place| {
                let (x, y) = frame.pixel(place);
                PALETTE[picture.buffer[y as usize * 400 + x as usize] as usize]
            };
            let torso = (0..7).filter(|&step| at([f64::from(step), 0.0]) == TORSO);
            steps.extend(torso);
            assert_eq!((at([0.5, 8.5]), at([-4.0, 0.0]), at([4.0, 8.0])), (GOAL, WALL, WHITE));
        }
        assert_eq!(steps, [0, 4, 6]);
        for broken in [Animation { states: &[], ..animation }, Animation { every: 0, ..animation }]
        {
            assert!(broken.encode().unwrap_err().contains("above 0"));
        }
    }
}
