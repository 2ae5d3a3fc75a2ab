//! The worlds: how a line is bent, and how one moves along it.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A world of walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Course {
    /// A ring of radius 10, walked counter-clockwise, 0.1 rad at a step: what lies just behind is a
    /// whole turn away.
    Ring,
    /// A corridor of length 12 with a door in the middle that lets pass to the right only; every
    /// step goes left or right at random, by up to 1.
    Corridor,
    /// A stem that forks: four of five walkers turn left, one turns right, whatever they do; both
    /// ways lead in a half circle back to the foot of the stem.
    Fork,
}

/// Radius of the ring and of the fork's half circles.
pub(super) const RADIUS: f64 = 10.0;
/// Length of the corridor; the door is in its middle.
pub(super) const CORRIDOR: f64 = 12.0;
/// How many of the fork's walkers turn left.
pub(super) const LEFT: f64 = 0.8;
/// Half the length of the fork's stem.
const STEM: f64 = 10.0;

impl Course {
    /// Every world.
    pub const ALL: [Self; 3] = [Self::Ring, Self::Corridor, Self::Fork];

    /// As it is written on a command line.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Corridor => "corridor",
            Self::Fork => "fork",
        }
    }

    /// The length of the line: of the ring's circumference, of the corridor, or of the fork's stem,
    /// left and right half circle one after another.
    pub(super) fn length(self) -> f64 {
        match self {
            Self::Ring => 2.0 * PI * RADIUS,
            Self::Corridor => CORRIDOR,
            Self::Fork => 2.0 * STEM + 2.0 * PI * RADIUS,
        }
    }

    /// Mean and deviation of a step along the line; the corridor's steps are uniform instead, from
    /// -1 to 1.
    pub(super) fn step(self) -> (f64, f64) {
        match self {
            Self::Ring => (0.1 * RADIUS, 0.02 * RADIUS),
            Self::Corridor => (0.0, 1.0 / 3.0_f64.sqrt()),
            Self::Fork => (1.0, 0.2),
        }
    }

    /// Where a step from `place` by `step` ends; `left` chooses the fork's way.
    pub(super) fn moved(self, place: f64, step: f64, left: bool) -> f64 {
        let (stem, half) = (2.0 * STEM, PI * RADIUS);
        let next = place + step;
        match self {
            Self::Ring => next.rem_euclid(self.length()),
            Self::Corridor => {
                let next = if next < 0.0 { -next } else { next };
                let next = if next > CORRIDOR { 2.0 * CORRIDOR - next } else { next };
                let door = CORRIDOR / 2.0;
                if place >= door && next < door { 2.0 * door - next } else { next }
            }
            // The right half circle lies behind the left one on the line.
            Self::Fork if place < stem && next >= stem && !left => next + half,
            Self::Fork if place < stem => next.max(0.0),
            Self::Fork if place < stem + half && next >= stem + half => next - stem - half,
            Self::Fork => next.rem_euclid(self.length()),
        }
    }

    /// The point of the plane at `place`.
    pub(super) fn point(self, place: f64) -> [f64; 2] {
        let (stem, half) = (2.0 * STEM, PI * RADIUS);
        match self {
            Self::Ring => {
                let angle = place / RADIUS;
                [RADIUS * angle.cos(), RADIUS * angle.sin()]
            }
            Self::Corridor => [place, 0.0],
            Self::Fork if place < stem => [0.0, place - STEM],
            Self::Fork => {
                let left = place < stem + half;
                let angle = (place - stem - if left { 0.0 } else { half }) / RADIUS;
                let side = if left { -1.0 } else { 1.0 };
                [side * RADIUS * angle.sin(), RADIUS * angle.cos()]
            }
        }
    }

    /// The direction in which the line goes at `place`.
    pub(super) fn direction(self, place: f64) -> [f64; 2] {
        let (here, ahead) = (self.point(place), self.point(place + 1e-6));
        let [x, y] = [ahead[0] - here[0], ahead[1] - here[1]];
        let length = x.hypot(y).max(f64::MIN_POSITIVE);
        [x / length, y / length]
    }

    /// The place of the line that is nearest to a point of the plane.
    pub(super) fn place(self, [x, y]: [f32; 2]) -> f64 {
        let (x, y) = (f64::from(x), f64::from(y));
        let (stem, half) = (2.0 * STEM, PI * RADIUS);
        match self {
            Self::Ring => y.atan2(x).rem_euclid(2.0 * PI) * RADIUS,
            Self::Corridor => x.clamp(0.0, CORRIDOR),
            Self::Fork => {
                // From the top of the circle; the stem is nearer than the circle within half of it.
                let angle = x.abs().atan2(y);
                let to_circle = (x.hypot(y) - RADIUS).abs();
                match (x.abs() < to_circle, x < 0.0) {
                    (true, _) => (y + STEM).clamp(0.0, stem - 1e-9),
                    (false, true) => stem + angle * RADIUS,
                    (false, false) => stem + half + angle * RADIUS,
                }
            }
        }
    }

    /// How many steps it takes from one point to another; none if it is not a certain number, or if
    /// there is no way.
    pub fn steps(self, from: [f32; 2], to: [f32; 2]) -> Option<f64> {
        let ahead = (self.place(to) - self.place(from)).rem_euclid(self.length());
        (self == Self::Ring).then(|| ahead / self.step().0)
    }
}

impl fmt::Display for Course {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.key())
    }
}

impl FromStr for Course {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|course| course.key() == name)
            .ok_or_else(|| Error::Course { found: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_found_again() {
        for course in Course::ALL {
            for number in 0..1000 {
                let place = (number as f64 + 0.5) / 1000.0 * course.length();
                let point = course.point(place).map(|x| x as f32);
                let found = course.place(point);
                // At its ends the fork's ways meet.
                let near = (found - place).abs() < 1e-3;
                let [x, y] = [0, 1].map(|at| course.point(found)[at] - course.point(place)[at]);
                assert!(near || x.hypot(y) < 1e-3, "{course} {place} {found}");
            }
        }
    }

    #[test]
    fn walks_keep_to_their_rules() {
        assert!((Course::Ring.steps([10.0, 0.0], [0.0, 10.0]).unwrap() - 15.708).abs() < 1e-3);
        assert!((Course::Ring.steps([0.0, 10.0], [10.0, 0.0]).unwrap() - 47.124).abs() < 1e-3);
        let corridor = |place, step| Course::Corridor.moved(place, step, true);
        assert_eq!((corridor(6.5, -1.0), corridor(5.5, 1.0)), (6.5, 6.5));
        assert_eq!((corridor(0.5, -1.0), corridor(11.5, 1.0)), (0.5, 11.5));
        let fork = |place, left| Course::Fork.moved(place, 1.0, left);
        assert_eq!(fork(19.5, true), 20.5);
        assert_eq!(fork(19.5, false), 20.5 + PI * RADIUS);
        assert!((fork(20.0 + PI * RADIUS - 0.5, true) - 0.5).abs() < 1e-9);
        assert!((fork(Course::Fork.length() - 0.5, false) - 0.5).abs() < 1e-9);
    }
}
