//! Many ants in training at once.

use std::sync::Arc;

use cm_envs::ant_maze::{ACTION, Ant, STATE};
use cm_envs::mujoco::Model;
use cm_random::{Philox, Stream, normal_pair};
use rand_core::Rng;
use rayon::prelude::*;

use super::course::{Course, End, Ground, Step};
use super::learner::{Acts, Learner};
use crate::expert::policy::Actions;
use crate::{Error, Result};

/// The streams of random numbers: of the courses, and of the actions that try something out.
const COURSES: u32 = 0x222;
const EXPLORATION: u32 = 0x223;
/// Words of a stream that are set aside for one ant in one iteration.
const WORDS: u64 = 1 << 20;

/// Ants, each on its course.
pub(super) struct Herd {
    ground: Ground,
    ants: Vec<Ant>,
    courses: Vec<Course>,
    philox: Philox,
}

/// What a herd did in one iteration: rows are ordered by step, then by ant.
#[derive(Default)]
pub(super) struct Experience {
    /// Raw, 29 numbers each.
    pub(super) inputs: Vec<f32>,
    /// Neither clipped nor squashed, 8 numbers each.
    pub(super) actions: Vec<f32>,
    pub(super) log_densities: Vec<f32>,
    pub(super) values: Vec<f32>,
    /// With the value of where a time-out cut the episode off.
    pub(super) rewards: Vec<f32>,
    pub(super) ended: Vec<bool>,
    /// Of where each ant is at the end.
    pub(super) last_values: Vec<f32>,
    /// Mean velocity along the direction.
    pub(super) velocity: f64,
    pub(super) falls: usize,
}

impl Herd {
    /// `courses` from a checkpoint, or fresh ones.
    pub(super) fn new(
        model: &Arc<Model>,
        ground: Ground,
        ants: usize,
        courses: Option<Vec<Course>>,
        seed: u64,
    ) -> Result<Self> {
        let philox = Philox::new(seed);
        let courses = courses.unwrap_or_else(|| {
            let begin = |ant| ground.begin(&mut stream(philox, u64::MAX, ant));
            (0..ants).map(begin).collect()
        });
        if courses.len() != ants {
            let (expected, found) = (format!("{} as courses", courses.len()), ants.to_string());
            return Err(Error::Setting { setting: "ants", expected, found });
        }
        let ants = (0..ants).map(|_| Ant::new(model)).collect::<Result<_, _>>()?;
        Ok(Self { ground, ants, courses, philox })
    }

    pub(super) fn courses(&self) -> &[Course] {
        &self.courses
    }

    /// What the ants see now.
    pub(super) fn inputs(&self) -> Vec<f32> {
        self.courses.iter().flat_map(Ground::input).collect()
    }

    /// Walks `steps` steps with the learner's policy, tried out with its own noise times `noise`.
    ///
    /// What happens depends on the seed, the iteration, the courses and the learner only: ants are
    /// placed anew at the beginning, so that nothing of an earlier iteration is left in the
    /// simulator, and a resumed training goes on exactly as one that was never cut off.
    pub(super) fn walk(
        &mut self,
        learner: &Learner,
        iteration: u64,
        steps: usize,
        noise: f32,
    ) -> Result<Experience> {
        let count = self.ants.len();
        let mut streams: Vec<_> =
            (0..count).map(|ant| stream(self.philox, iteration, ant)).collect();
        let mut exploration = self.philox.stream(iteration, EXPLORATION);
        let place = |(ant, course): (&mut Ant, &Course)| ant.place(&course.state);
        self.ants.par_iter_mut().zip(&self.courses).try_for_each(place)?;
        let mut experience = Experience::default();
        for _ in 0..steps {
            let inputs = self.inputs();
            let acts = learner.act(&inputs)?;
            let (actions, log_densities) = explore(&acts, noise, &mut exploration);
            let outcomes = match learner.settings().actions {
                Actions::Clipped => self.step(&actions, &mut streams)?,
                Actions::Squashed { .. } => {
                    let squashed: Vec<f32> = actions.iter().map(|action| action.tanh()).collect();
                    self.step(&squashed, &mut streams)?
                }
            };
            let mut rewards: Vec<f32> = outcomes.iter().map(|outcome| outcome.0.reward).collect();
            let cut_off: Vec<f32> =
                outcomes.iter().filter_map(|outcome| outcome.1).flatten().collect();
            let cut_off_values = learner.values(&cut_off)?;
            let timed_out =
                outcomes.iter().zip(&mut rewards).filter(|(outcome, _)| outcome.1.is_some());
            for ((_, reward), value) in timed_out.zip(cut_off_values) {
                *reward += learner.settings().discount * value;
            }
            experience.velocity += outcomes.iter().map(|outcome| outcome.0.velocity).sum::<f64>();
            experience.falls += outcomes.iter().filter(|outcome| outcome.0.fell).count();
            experience.ended.extend(outcomes.iter().map(|outcome| outcome.0.end.is_some()));
            experience.rewards.extend(rewards);
            experience.inputs.extend(inputs);
            experience.actions.extend(actions);
            experience.log_densities.extend(log_densities);
            experience.values.extend(acts.values);
        }
        experience.velocity /= (steps * count).max(1) as f64;
        experience.last_values = learner.values(&self.inputs())?;
        Ok(experience)
    }

    /// One step of every ant. Those whose time is up also give what they saw last.
    fn step(
        &mut self,
        actions: &[f32],
        streams: &mut [Stream],
    ) -> Result<Vec<(Step, Option<[f32; STATE]>)>> {
        let ground = &self.ground;
        let walk = |(((ant, course), action), random): (
            ((&mut Ant, &mut Course), &[f32]),
            &mut Stream,
        )| {
            let step = ground.step(ant, course, action, random);
            let last = (step.end == Some(End::TimedOut)).then(|| Ground::input(course));
            if step.end.is_some() {
                *course = ground.begin(random);
                ant.place(&course.state)?;
            }
            Ok((step, last))
        };
        let ants = self.ants.par_iter_mut().zip(&mut self.courses);
        ants.zip(actions.par_chunks_exact(ACTION)).zip(streams).map(walk).collect()
    }
}

fn stream(philox: Philox, iteration: u64, ant: usize) -> Stream {
    let mut stream = philox.stream(iteration, COURSES);
    stream.seek(ant as u64 * WORDS);
    stream
}

/// Actions drawn around the means, and the logarithms of their densities.
fn explore(acts: &Acts, noise: f32, random: &mut Stream) -> (Vec<f32>, Vec<f32>) {
    let mut actions = acts.means.clone();
    let mut log_densities = Vec::with_capacity(actions.len() / ACTION);
    let rows = actions.chunks_exact_mut(ACTION).zip(acts.deviations.chunks_exact(ACTION));
    for (action, deviations) in rows {
        let mut log_density = 0.0;
        for (pair, deviations) in action.chunks_exact_mut(2).zip(deviations.chunks_exact(2)) {
            let (first, second) = normal_pair(random.next_u32(), random.next_u32());
            for ((action, z), deviation) in pair.iter_mut().zip([first, second]).zip(deviations) {
                *action += noise * deviation * z;
                log_density -= 0.5 * z * z + deviation.ln() + 0.918_938_5; // ln(2 pi) / 2
            }
        }
        log_densities.push(log_density);
    }
    (actions, log_densities)
}
