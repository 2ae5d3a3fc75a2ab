//! Exact successor distances of a world, by a fine discretisation.

use super::Course;
use super::course::LEFT;
use crate::Error;
use crate::tabular::{AllPairs, Discount, MarkovChain};

/// The successor distances of a world's walk between the cells of its line.
pub struct ExactDistances {
    course: Course,
    distances: AllPairs,
}

/// Cells to the unit of length; a step is about one unit.
const FINENESS: f64 = 6.0;
/// Into how many equally likely steps the distribution of steps is cut.
const STEPS: usize = 64;

impl Course {
    /// The exact distances at the discount `gamma`.
    ///
    /// ```
    /// use cm_envs::walks::Course;
    ///
    /// let exact = Course::Corridor.exact(0.95)?;
    /// // Nobody passes the door to the left.
    /// assert!(exact.distance([8.0, 0.0], [4.0, 0.0]).is_infinite());
    /// assert!(exact.distance([4.0, 0.0], [8.0, 0.0]) < 10.0);
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn exact(self, gamma: f64) -> Result<ExactDistances, Error> {
        let cells = self.cells();
        let chain = MarkovChain::from_fn(cells, |cell| {
            let place = (cell as f64 + 0.5) / cells as f64 * self.length();
            let ways = [(true, LEFT), (false, 1.0 - LEFT)];
            ways.into_iter().flat_map(move |(left, share)| {
                (0..STEPS).map(move |number| {
                    let step = self.quantile((number as f64 + 0.5) / STEPS as f64);
                    (self.cell(self.moved(place, step, left)), share / STEPS as f64)
                })
            })
        })?;
        let distances = chain.successor_distances(Discount::new(gamma)?)?;
        Ok(ExactDistances { course: self, distances })
    }

    fn cells(self) -> usize {
        (self.length() * FINENESS).round() as usize
    }

    fn cell(self, place: f64) -> usize {
        let cells = self.cells();
        ((place / self.length() * cells as f64) as usize).min(cells - 1)
    }

    /// The step that a share `u` of all steps stay below.
    fn quantile(self, u: f64) -> f64 {
        let (mean, deviation) = self.step();
        match self {
            Self::Corridor => 2.0 * u - 1.0,
            _ => mean + deviation * normal_quantile(u),
        }
    }
}

impl ExactDistances {
    /// From the point of the line nearest to `from` to the one nearest to `to`.
    pub fn distance(&self, from: [f32; 2], to: [f32; 2]) -> f64 {
        let cell = |point| self.course.cell(self.course.place(point));
        self.distances[(cell(from), cell(to))]
    }
}

/// The inverse of the normal distribution's, by bisection.
fn normal_quantile(u: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < u { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// How much of the normal distribution lies below `x`, by Simpson's rule from the middle.
fn normal_below(x: f64) -> f64 {
    let pieces = 200;
    let width = x / pieces as f64;
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let weight = |at: usize| match at {
        0 => 1.0,
        at if at == pieces => 1.0,
        at if at % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=pieces).map(|at| weight(at) * density(at as f64 * width)).sum();
    0.5 + sum * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_normal_distribution_s() {
        for (u, wanted) in [(0.5, 0.0), (0.975, 1.959_964), (0.1, -1.281_552)] {
            assert!((normal_quantile(u) - wanted).abs() < 1e-5, "{u}");
        }
    }

    /// On the ring the distance grows by about log(1/gamma) a step; the fork's rarer way costs
    /// log(5) where the usual one costs log(5/4).
    #[test]
    fn distances_are_those_of_steps_and_choices() {
        let ring = Course::Ring.exact(0.95).unwrap();
        let at = |steps: f64| Course::Ring.point(steps * 1.0).map(|x| x as f32);
        let (near, far) = (ring.distance(at(0.0), at(20.0)), ring.distance(at(0.0), at(40.0)));
        let a_step = (far - near) / 20.0;
        assert!((a_step + 0.95_f64.ln()).abs() < 0.005, "{a_step}");
        let fork = Course::Fork.exact(0.95).unwrap();
        let middle = [0.0, 0.0];
        let (left, right) =
            (fork.distance(middle, [-10.0, 0.0]), fork.distance(middle, [10.0, 0.0]));
        assert!((right - left - 4.0_f64.ln()).abs() < 0.1, "{left} {right}");
    }
}
