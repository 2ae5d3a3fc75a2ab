//! Training and validation trajectories.

use cm_random::{Philox, below_u64};
use rand_core::Rng;

use crate::{Dataset, Error, Result};

/// The stream the trajectories are shuffled with, at step 0.
pub const SPLIT_STREAM: u32 = 0x010;

/// Trajectories to train on and trajectories to validate on, each ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Trajectories to train on, at least one.
    pub training: Vec<usize>,
    /// Trajectories to validate on.
    pub validation: Vec<usize>,
}

impl Dataset {
    /// Sets a `fraction` (in `[0, 1)`) of the trajectories, rounded to the nearest number, aside
    /// for validation. Whole trajectories: steps of one trajectory are too alike to validate on.
    ///
    /// ```
    /// use cm_replay::{Dataset, Matrix};
    ///
    /// let numbers = Matrix::from_vec(40, 1, vec![0.0; 40])?;
    /// let data = Dataset::new(numbers.clone(), numbers, (1..=20).map(|t| 2 * t).collect())?;
    /// let split = data.split(0.1, 7)?;
    /// assert_eq!((split.training.len(), split.validation.len()), (18, 2));
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn split(&self, fraction: f64, seed: u64) -> Result<Split> {
        if !(0.0..1.0).contains(&fraction) {
            let found = fraction.to_string();
            return Err(Error::Parameter {
                name: "the validation fraction",
                expected: "in [0, 1)",
                found,
            });
        }
        let count = self.trajectories();
        let aside = ((count as f64 * fraction).round() as usize).min(count - 1);
        let mut order: Vec<usize> = (0..count).collect();
        let mut stream = Philox::new(seed).stream(0, SPLIT_STREAM);
        // The first `aside` places of a Fisher-Yates shuffle.
        for place in 0..aside {
            let ahead = below_u64(stream.next_u64(), (count - place) as u64) as usize;
            order.swap(place, place + ahead);
        }
        let mut training = order.split_off(aside);
        training.sort_unstable();
        order.sort_unstable();
        Ok(Split { training, validation: order })
    }
}
