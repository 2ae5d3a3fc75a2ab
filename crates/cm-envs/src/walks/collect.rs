//! Walks through a world, as data.

use cm_random::{Philox, normal_pair, unit_f64};
use rand_core::Rng;

use super::{Course, STREAM};
use crate::Error;

/// Trajectories, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// What was observed at each step, noise included.
    pub observations: Vec<[f32; 2]>,
    /// What was done there: the direction of the line, times the step in the corridor, where steps
    /// have a size and a sign.
    pub actions: Vec<[f32; 2]>,
    /// The row after the last one of each trajectory.
    pub ends: Vec<usize>,
}

/// Deviation of the noise on each coordinate of an observation.
const NOISE: f64 = 0.05;

impl Course {
    /// Walks of `length` steps from places drawn evenly from the line; the same seed gives the
    /// same.
    ///
    /// ```
    /// use cm_envs::walks::Course;
    ///
    /// let walks = Course::Ring.collect(300, 60, 0)?;
    /// assert_eq!((walks.observations.len(), walks.ends.len()), (18_000, 300));
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn collect(self, walks: usize, length: usize, seed: u64) -> Result<Collected, Error> {
        for (what, number) in [("walks", walks), ("length", length)] {
            if number == 0 {
                return Err(Error::Empty { what });
            }
        }
        let philox = Philox::new(seed);
        let mut all = Collected::default();
        for walk in 0..walks {
            let mut random = philox.stream(walk as u64, STREAM);
            let mut place = unit_f64(random.next_u64()) * self.length();
            for _ in 0..length {
                let mut normals = || normal_pair(random.next_u32(), random.next_u32());
                let ((right, up), (by, _)) = (normals(), normals());
                let (right, up, by) = (f64::from(right), f64::from(up), f64::from(by));
                let (mean, deviation) = self.step();
                let uniform = unit_f64(random.next_u64());
                let left = unit_f64(random.next_u64()) < super::course::LEFT;
                let step = match self {
                    Self::Corridor => 2.0 * uniform - 1.0,
                    _ => mean + deviation * by,
                };
                let [x, y] = self.point(place);
                let size = if self == Self::Corridor { step } else { 1.0 };
                let action = self.direction(place).map(|part| (size * part) as f32);
                all.observations.push([(x + NOISE * right) as f32, (y + NOISE * up) as f32]);
                all.actions.push(action);
                place = self.moved(place, step, left);
            }
            all.ends.push(all.observations.len());
        }
        Ok(all)
    }
}

impl Collected {
    /// As CSV: `trajectory`, the observation's and the action's coordinates.
    pub fn to_csv(&self) -> String {
        let mut text = "trajectory,observation_x,observation_y,action_x,action_y\n".to_owned();
        let mut row = 0;
        for (trajectory, &end) in self.ends.iter().enumerate() {
            while row < end {
                let ([x, y], [right, up]) = (self.observations[row], self.actions[row]);
                text += &format!("{trajectory},{x},{y},{right},{up}\n");
                row += 1;
            }
        }
        text
    }
}
