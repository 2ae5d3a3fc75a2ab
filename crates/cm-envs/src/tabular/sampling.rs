//! Trajectories of a process under a policy, so that learning code can be trained on what is known
//! exactly.

use cm_random::{Philox, Stream, below_u64, unit_f64};
use rand_core::Rng;
use rayon::prelude::*;

use super::policy::Policy;
use super::process::ControlledProcess;
use super::transitions::{Transitions, dense_row};
use crate::Error;
use crate::error::check_index;

/// The stream of random numbers that trajectories are drawn from, among those of environments.
const TRAJECTORIES: u32 = 0x200;

/// Where trajectories start: the distribution `p_0` of the paper.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// Always this state.
    State(usize),
    /// Every state with the same probability.
    Uniform,
    /// Each state with its own probability.
    Distribution(Vec<f64>),
}

/// What to sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Where trajectories start.
    pub start: Start,
    /// Number of trajectories.
    pub trajectories: usize,
    /// Number of actions in each.
    pub steps: usize,
    /// The same seed gives the same trajectories, on any number of threads.
    pub seed: u64,
}

/// States and the actions between them: one more state than actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trajectory {
    /// `s_0, s_1, ...`
    pub states: Vec<u32>,
    /// `a_0, a_1, ...`
    pub actions: Vec<u32>,
}

impl Sampling {
    /// Draws the trajectories of `process` when `policy` acts. Trajectory `i` does not depend on
    /// how many there are.
    ///
    /// ```
    /// use cm_envs::tabular::{ControlledProcess, Policy, Sampling, Start};
    ///
    /// let ring = ControlledProcess::from_fn(3, 2, |state, action| [((state + action) % 3, 1.0)])?;
    /// let policy = Policy::deterministic(2, &[1, 1, 0])?;
    /// let sampling = Sampling { start: Start::State(0), trajectories: 2, steps: 3, seed: 1 };
    /// let trajectories = sampling.sample(&ring, &policy)?;
    /// assert_eq!(trajectories[1].states, [0, 1, 2, 2]);
    /// assert_eq!(trajectories[1].actions, [1, 1, 0]);
    /// # Ok::<(), cm_envs::Error>(())
    /// ```
    pub fn sample(
        &self,
        process: &ControlledProcess,
        policy: &Policy,
    ) -> Result<Vec<Trajectory>, Error> {
        process.check_policy(policy)?;
        let start = self.start.checked(process.states())?;
        let philox = Philox::new(self.seed);
        let trajectory = |index: usize| {
            let mut random = philox.stream(index as u64, TRAJECTORIES);
            let mut state = start(&mut random);
            let mut states = vec![state as u32];
            let mut actions = Vec::with_capacity(self.steps);
            for _ in 0..self.steps {
                let action = draw(policy.choices(state), &mut random);
                state = draw(process.successors(state, action), &mut random);
                actions.push(action as u32);
                states.push(state as u32);
            }
            Trajectory { states, actions }
        };
        Ok((0..self.trajectories).into_par_iter().map(trajectory).collect())
    }
}

impl Start {
    /// A function that draws the first of `states` states.
    fn checked(
        &self,
        states: usize,
    ) -> Result<Box<dyn Fn(&mut Stream) -> usize + Send + Sync>, Error> {
        match *self {
            Self::State(state) => {
                check_index(|| "start".into(), state, states)?;
                Ok(Box::new(move |_| state))
            }
            Self::Uniform => {
                Ok(Box::new(move |random| below_u64(random.next_u64(), states as u64) as usize))
            }
            Self::Distribution(ref probabilities) => {
                let (expected, found) = (states, probabilities.len());
                if found != expected {
                    return Err(Error::Length { what: "start".into(), expected, found });
                }
                let row = [dense_row(probabilities)];
                let row = Transitions::from_rows(states, row, |_| "start".to_owned())?;
                Ok(Box::new(move |random| draw(row.row(0), random)))
            }
        }
    }
}

/// One of the entries, by inversion. The last takes what rounding leaves.
fn draw(row: impl Iterator<Item = (usize, f64)>, random: &mut Stream) -> usize {
    let mut left = unit_f64(random.next_u64());
    let mut drawn = 0;
    for (entry, probability) in row {
        drawn = entry;
        left -= probability;
        if left < 0.0 {
            break;
        }
    }
    drawn
}
