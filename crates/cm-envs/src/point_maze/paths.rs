//! The noisy curves that the world is made of.

use cm_random::{Philox, Stream, normal_pair};
use rand_core::Rng;
use rayon::prelude::*;

use super::streams;

/// A way through the plane, in the order it is walked.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Which of the kinds of path it is, counted from 0: they share their waypoints, and a colour
    /// in pictures.
    pub kind: usize,
    /// Its points.
    pub points: Vec<[f32; 2]>,
}

/// Paths that share their waypoints.
struct Kind {
    count: usize,
    waypoints: &'static [[f32; 2]],
    /// Width of the moving average over the waypoints of a curve; straight from one to the next if
    /// 0.
    smoothing: usize,
    /// Where the path is noisy.
    source: [f32; 2],
}

const KINDS: [Kind; 8] = [
    Kind { count: 30, waypoints: &[[-20.0, 0.0], [20.0, 0.0]], smoothing: 0, source: [0.0, 0.0] },
    Kind { count: 30, waypoints: &[[0.0, 20.0], [0.0, -20.0]], smoothing: 0, source: [0.0, 0.0] },
    Kind {
        count: 15,
        waypoints: &[
            [0.0, 20.0],
            [-5.0, 30.0],
            [15.0, 30.0],
            [30.0, 15.0],
            [30.0, -5.0],
            [20.0, 0.0],
        ],
        smoothing: 20,
        source: [21.0, 21.0],
    },
    Kind {
        count: 15,
        waypoints: &[[0.0, -20.0], [-30.0, -20.0], [-30.0, 20.0], [0.0, 20.0]],
        smoothing: 40,
        source: [-10.0, 0.0],
    },
    Kind {
        count: 15,
        waypoints: &[[-24.0, 10.0], [-40.0, 20.0], [-30.0, 45.0]],
        smoothing: 30,
        source: [-24.0, 10.0],
    },
    Kind {
        count: 15,
        waypoints: &[[-30.0, 45.0], [-14.0, 38.0], [0.0, 20.0]],
        smoothing: 30,
        source: [-10.0, 10.0],
    },
    Kind {
        count: 15,
        waypoints: &[[21.5, 22.0], [30.0, 45.0], [-20.0, 50.0], [-15.0, 35.0]],
        smoothing: 30,
        source: [21.0, 21.0],
    },
    Kind {
        count: 15,
        waypoints: &[[20.0, 0.0], [12.0, -35.0], [-30.0, -35.0], [-20.0, 0.5]],
        smoothing: 30,
        source: [0.0, 0.0],
    },
];

/// Points in the longest path.
const LONGEST: usize = 1_000;
const STEP: f32 = 0.15;
const START_NOISE: f32 = 0.1;
/// Noise of a step far from the source, and what is added at it.
const NOISE: [f32; 2] = [0.02, 0.5];
/// How quickly the noise fades with the distance from the source.
const FADING: f32 = 0.5;
/// How much of the component along the path is taken from a step's direction, so that steps mostly
/// correct what noise has done.
const TAKEN: f32 = 0.8;
/// A path has arrived when the point this many before its last is near enough to its end.
const LOOK_BACK: usize = 3;
const ARRIVED: f32 = 0.5;
/// Waypoints of a curve are first filled in until they are this close.
const SPACING: f32 = 2.0;
/// Of the smoothed waypoints of a curve, every so manyth is kept.
const KEPT: usize = 3;

/// Every path of the world of this seed.
pub(super) fn all(seed: u64) -> Vec<Path> {
    let philox = Philox::new(seed);
    let kinds = KINDS.iter().enumerate();
    let numbered: Vec<_> =
        kinds.flat_map(|(kind, of)| std::iter::repeat_n((kind, of), of.count)).collect();
    numbered
        .into_par_iter()
        .enumerate()
        .map(|(number, (kind, of))| {
            let mut random = philox.stream(number as u64, streams::PATHS);
            Path { kind, points: of.draw(&mut random) }
        })
        .collect()
}

/// How many kinds of path there are.
pub(super) const fn kinds() -> usize {
    KINDS.len()
}

impl Kind {
    fn draw(&self, random: &mut Stream) -> Vec<[f32; 2]> {
        let waypoints = match self.smoothing {
            0 => self.waypoints.to_vec(),
            width => curve(self.waypoints, width),
        };
        let longest = match self.smoothing {
            0 => LONGEST,
            _ => LONGEST / (waypoints.len() - 1) + 1,
        };
        let mut points: Vec<[f32; 2]> = Vec::new();
        for ends in waypoints.windows(2) {
            let start = points.last().copied().unwrap_or(ends[0]);
            self.walk(start, ends[1], longest, random, &mut points);
        }
        points
    }

    /// Appends a walk of at most `longest` points.
    fn walk(
        &self,
        start: [f32; 2],
        end: [f32; 2],
        longest: usize,
        random: &mut Stream,
        points: &mut Vec<[f32; 2]>,
    ) {
        let mut place = add(start, scale(normal(random), START_NOISE));
        let along = unit(sub(end, place));
        let end = add(end, along);
        let first = points.len();
        points.push(place);
        while points.len() - first < longest {
            let towards = unit(sub(end, place));
            let direction = unit(sub(towards, scale(along, TAKEN * dot(along, towards))));
            let faded = length(scale(sub(place, self.source), FADING)).powi(2);
            let noise = NOISE[1] * (-faded).exp() + NOISE[0];
            place = add(place, add(scale(direction, STEP), scale(normal(random), noise)));
            points.push(place);
            let walked = points.len() - first;
            if walked > LOOK_BACK
                && length(sub(points[points.len() - 1 - LOOK_BACK], end)) <= ARRIVED
            {
                break;
            }
        }
    }
}

/// Waypoints close together, smoothed by a moving average that sees the ends repeated, and thinned.
fn curve(waypoints: &[[f32; 2]], width: usize) -> Vec<[f32; 2]> {
    let mut dense = Vec::new();
    let mut left: Vec<_> = waypoints.iter().rev().copied().collect();
    while let Some(point) = left.pop() {
        while let Some(&next) = left.last()
            && length(sub(next, point)) > SPACING
        {
            left.push(scale(add(point, next), 0.5));
        }
        dense.push(point);
    }
    let last = dense.len() - 1;
    // Window k covers the `width` places that end at k, and places beyond either end count as the
    // end.
    let mean = |window: usize| {
        let places = (0..width).map(|back| window.saturating_sub(back).min(last));
        let sum = places.fold([0.0; 2], |sum, place| add(sum, dense[place]));
        scale(sum, 1.0 / width as f32)
    };
    let smooth: Vec<_> = (0..dense.len() + width - 1).map(mean).collect();
    smooth.iter().step_by(KEPT).chain(smooth.last()).copied().collect()
}

pub(super) fn normal(random: &mut Stream) -> [f32; 2] {
    let (x, y) = normal_pair(random.next_u32(), random.next_u32());
    [x, y]
}

pub(super) fn add(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

pub(super) fn sub(a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn scale(a: [f32; 2], factor: f32) -> [f32; 2] {
    [a[0] * factor, a[1] * factor]
}

pub(super) fn length(a: [f32; 2]) -> f32 {
    dot(a, a).sqrt()
}

/// The direction of `a`; zero if that has none.
pub(super) fn unit(a: [f32; 2]) -> [f32; 2] {
    /// Keeps the length of what has none from being divided by.
    const EPSILON: f32 = 1e-6;
    scale(a, 1.0 / (length(a) + EPSILON))
}

fn dot(a: [f32; 2], b: [f32; 2]) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_path_leads_from_its_start_to_beyond_its_end() {
        let paths = all(3);
        assert_eq!(paths.len(), 150);
        for path in paths.iter().filter(|path| path.kind == 0) {
            let (first, last) = (path.points[0], path.points[path.points.len() - 1]);
            assert!(length(sub(first, [-20.0, 0.0])) < 0.6, "{first:?}");
            assert!(length(sub(last, [21.0, 0.0])) < 1.2, "{last:?}");
            // 41 units in steps of 0.15, and what the noise at the centre adds or takes.
            assert!((230..320).contains(&path.points.len()), "{}", path.points.len());
        }
    }

    #[test]
    fn a_curve_is_smooth_and_keeps_its_ends() {
        let corner = curve(&[[0.0, 0.0], [40.0, 0.0], [40.0, 40.0]], 9);
        assert_eq!((corner[0], corner[corner.len() - 1]), ([0.0, 0.0], [40.0, 40.0]));
        assert!(corner.iter().all(|point| length(sub(*point, [40.0, 0.0])) > 0.7));
        let longest =
            corner.windows(2).map(|pair| length(sub(pair[1], pair[0]))).fold(0.0, f32::max);
        assert!(longest <= KEPT as f32 * SPACING, "{longest}");
    }

    #[test]
    fn noise_is_large_at_the_source_alone() {
        let paths = all(0);
        let sideways = |near: bool| {
            let points = paths.iter().filter(|path| path.kind == 0).flat_map(|path| &path.points);
            let chosen: Vec<f32> =
                points.filter(|p| (p[0].abs() < 1.0) == near && p[0] < 1.0).map(|p| p[1]).collect();
            (chosen.iter().map(|y| y * y).sum::<f32>() / chosen.len() as f32).sqrt()
        };
        assert!(sideways(true) > 3.0 * sideways(false), "{} {}", sideways(true), sideways(false));
    }
}
