//! An ant learns to walk in any direction, from nothing.

mod checkpoint;
mod course;
mod herd;
mod inputs;
mod learner;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Instant;

use cm_envs::ant_maze::{Ant, Maze};
use cm_envs::mujoco::Mujoco;
use cm_nn::Snapshot;

use self::checkpoint::Checkpoint;
use self::course::Ground;
pub use self::course::Rules;
use self::herd::Herd;
use self::learner::{Learner, Settings};
use super::mirror::mirrored;
use super::policy::{Actions, ExpertFile};
use crate::progress::Stage;
use crate::{Error, Event, Progress, Result, Unit, output};

/// How to train an expert.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainSettings {
    /// For the expert, the checkpoint and the metrics; a training that is there already goes on.
    pub folder: PathBuf,
    /// Walk in this maze instead of on an open floor.
    pub maze: Option<Maze>,
    /// Steps of the environment.
    pub steps: u64,
    /// Start from this expert instead of from nothing.
    pub from: Option<ExpertFile>,
    /// Start from it as a mirror shows it: what it does to the left, the new one does to the right.
    pub mirrored: bool,
    /// Ants that walk at once.
    pub ants: usize,
    /// The same seed gives the same expert, on any number of threads.
    pub seed: u64,
    /// Threads to use; 0 for all cores.
    pub threads: usize,
    /// What the ants are paid for, and when their episodes are over.
    pub rules: Rules,
    /// How actions are drawn.
    pub actions: Actions,
    /// What the means of a clipped policy are multiplied by where a squashed one starts from it, for
    /// hips and for ankles: above 1 its actions become more vigorous.
    pub gain: [f32; 2],
    /// Weight of the policy's entropy.
    pub entropy: f32,
    /// What a reward one step later counts, at least 0 and below 1.
    pub discount: f32,
    /// Keep the expert as it is after every so many steps too.
    pub keep_every: Option<u64>,
}

impl TrainSettings {
    /// Three million steps on an open floor, from nothing, by the clean recipe: an ant that falls
    /// has lost.
    ///
    /// ```
    /// assert_eq!(cm_data::expert::TrainSettings::clean("runs/floor").ants, 128);
    /// ```
    pub fn clean(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            maze: None,
            steps: 3_000_000,
            from: None,
            mirrored: false,
            ants: 128,
            seed: 0,
            threads: 0,
            rules: Rules {
                standing: 0.3,
                effort: 0.05,
                falls_end: true,
                longest: 500,
                hold: [10, 99],
                reach: f64::INFINITY,
                spread: 0.0,
                paid_to_goal: false,
            },
            actions: Actions::Clipped,
            gain: [1.0; 2],
            entropy: 1e-3,
            discount: 0.97,
            keep_every: None,
        }
    }

    /// For the expert of D4RL's recipe: paid for progress alone, and a fall does not end an episode.
    /// How it was made in steps is in `expert/ant_d4rl.md`.
    ///
    /// ```
    /// let settings = cm_data::expert::TrainSettings::d4rl("runs/floor");
    /// assert!(!settings.rules.falls_end);
    /// ```
    pub fn d4rl(folder: impl Into<PathBuf>) -> Self {
        let clean = Self::clean(folder);
        Self {
            rules: Rules {
                standing: 0.0,
                effort: 0.0,
                falls_end: false,
                longest: 200,
                ..clean.rules
            },
            ..clean
        }
    }
}

/// Steps that each ant walks in an iteration.
const STRIDE: usize = 32;
/// Iterations between two checkpoints, with an evaluation each.
const PERIOD: u64 = 20;
/// Of an evaluation.
const EVALUATION_ANTS: usize = 32;
const EVALUATION_STEPS: usize = 200;

/// Trains an expert, or goes on with a training that was cut off, and says where its file is.
pub fn train(settings: &TrainSettings, progress: Progress<'_>) -> Result<PathBuf> {
    if settings.ants == 0 {
        let (expected, found) = ("at least 1".to_owned(), "0".to_owned());
        return Err(Error::Setting { setting: "ants", expected, found });
    }
    let TrainSettings { rules, gain, entropy, discount, .. } = settings;
    for (setting, number) in [
        ("standing", rules.standing),
        ("effort", rules.effort),
        ("gain", f64::from(gain[0])),
        ("gain", f64::from(gain[1])),
        ("entropy", f64::from(*entropy)),
    ] {
        if !number.is_finite() {
            let expected = "a finite number".to_owned();
            return Err(Error::Setting { setting, expected, found: number.to_string() });
        }
    }
    let Rules { hold: [fewest, most], reach, spread, paid_to_goal, .. } = *rules;
    for (setting, right, expected, found) in [
        (
            "hold",
            0 < fewest && fewest <= most,
            "two rising numbers above 0",
            format!("{fewest},{most}"),
        ),
        ("reach", reach > 0.0, "a number above 0", reach.to_string()),
        (
            "reach",
            reach.is_infinite() || settings.maze.is_none(),
            "none in a maze, which has goals of its own",
            reach.to_string(),
        ),
        ("spread", (0.0..f64::MAX).contains(&spread), "a number of at least 0", spread.to_string()),
        (
            "spread",
            spread == 0.0 || reach.is_finite(),
            "0 where goals have no reach",
            spread.to_string(),
        ),
        (
            "paid-to-goal",
            spread > 0.0 || !paid_to_goal,
            "goals that waver (a spread)",
            format!("a spread of {spread}"),
        ),
        ("discount", (0.0..1.0).contains(discount), "a number in [0, 1)", discount.to_string()),
        (
            "mirrored",
            settings.from.is_some() || !settings.mirrored,
            "an expert to start from",
            "none".to_owned(),
        ),
    ] {
        if !right {
            return Err(Error::Setting { setting, expected: expected.to_owned(), found });
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build()?;
    pool.install(|| {
        let mut training = Training::open(settings)?;
        training.run(settings.steps, progress)?;
        Ok(training.expert_path())
    })
}

/// A training under way.
struct Training {
    folder: PathBuf,
    plan: String,
    mujoco: Mujoco,
    maze: Option<Maze>,
    rules: Rules,
    keep_every: Option<u64>,
    seed: u64,
    learner: Learner,
    herd: Herd,
    iteration: u64,
}

/// How well a policy walks without exploring.
#[derive(Clone, Copy, Debug)]
struct Evaluation {
    /// Mean units per second along the direction.
    velocity: f64,
    /// Falls in a thousand steps.
    falls: f64,
}

impl Training {
    /// Starts a training, or goes on with the one in the folder.
    fn open(settings: &TrainSettings) -> Result<Self> {
        let TrainSettings { folder, maze, ants, seed, rules, .. } = settings;
        let TrainSettings { actions, gain, entropy, discount, .. } = *settings;
        let learning = Settings { actions, gain, entropy, discount, ..Settings::default() };
        let mut learner = Learner::new(learning, *seed)?;
        if let Some(file) = &settings.from {
            let refused = |reason| Error::content(file.path(), format!("not an expert: {reason}"));
            let snapshot = Snapshot::from_safetensors(&file.read()?)
                .map_err(|error| refused(error.to_string()))?;
            learner.restore_expert(&snapshot).map_err(refused)?;
            if settings.mirrored {
                let image = mirrored(&learner.expert()?);
                learner.restore_expert(&image).map_err(refused)?;
            }
        }
        let plan = plan(settings);
        let checkpoint = folder.join("checkpoint.bin");
        let (mut iteration, mut courses) = (0, None);
        if let Some(found) = Checkpoint::load(&checkpoint)? {
            if found.plan != plan {
                let (path, expected) = (folder.clone(), plan);
                return Err(Error::OtherTraining { path, expected, found: found.plan });
            }
            learner
                .restore_expert(&found.expert)
                .map_err(|reason| Error::content(&checkpoint, reason))?;
            learner.restore_optimiser(&found.optimiser, found.learning_rate)?;
            learner.inputs = found.inputs;
            (iteration, courses) = (found.iteration, Some(found.courses));
        }
        let mujoco = Mujoco::find()?;
        let model = Ant::model(&mujoco, *maze)?;
        let herd = Herd::new(&model, Ground::new(*maze, *rules), *ants, courses, *seed)?;
        if iteration == 0 && settings.from.is_none() {
            learner.inputs.update(&herd.inputs());
        }
        output::make_folder(folder)?;
        let (folder, maze, seed, rules) = (folder.clone(), *maze, *seed, *rules);
        let keep_every = settings.keep_every;
        Ok(Self { folder, plan, mujoco, maze, rules, keep_every, seed, learner, herd, iteration })
    }

    /// Trains until `steps` steps were walked altogether.
    fn run(&mut self, steps: u64, progress: Progress<'_>) -> Result<()> {
        let per_iteration = (STRIDE * self.herd.courses().len()) as u64;
        let iterations = steps.div_ceil(per_iteration);
        let (done, total) = (self.iteration * per_iteration, iterations * per_iteration);
        let stage = Stage::begin(progress, "walking", Unit::Steps, done, Some(total));
        let start = Instant::now();
        while self.iteration < iterations {
            let (velocity, divergence) = self.iterate()?;
            stage.advance(per_iteration);
            progress(Event::Going(&format!("{velocity:.2} units per second")));
            if self.iteration.is_multiple_of(PERIOD) || self.iteration == iterations {
                let evaluation = self.evaluate()?;
                self.record(start, per_iteration, velocity, divergence, evaluation)?;
                let Evaluation { velocity, falls } = evaluation;
                let steps = self.iteration * per_iteration;
                progress(Event::Evaluated { steps, velocity, falls });
                self.save()?;
            }
            self.keep(per_iteration)?;
        }
        // Nothing to train, such as a clipped policy that is only to be squashed.
        if !self.expert_path().exists() {
            self.save()?;
        }
        Ok(())
    }

    fn iterate(&mut self) -> Result<(f64, f32)> {
        let experience = self.herd.walk(&self.learner, self.iteration, STRIDE, 1.0)?;
        let divergence = self.learner.learn(&experience, self.iteration)?;
        self.iteration += 1;
        Ok((experience.velocity, divergence))
    }

    /// Fresh ants, mean actions.
    fn evaluate(&self) -> Result<Evaluation> {
        let model = Ant::model(&self.mujoco, self.maze)?;
        let seed = self.seed ^ 0x5eed;
        let ground = Ground::new(self.maze, self.rules);
        let mut herd = Herd::new(&model, ground, EVALUATION_ANTS, None, seed)?;
        let experience = herd.walk(&self.learner, 0, EVALUATION_STEPS, 0.0)?;
        let steps = (EVALUATION_ANTS * EVALUATION_STEPS) as f64;
        Ok(Evaluation {
            velocity: experience.velocity,
            falls: 1000.0 * experience.falls as f64 / steps,
        })
    }

    fn save(&self) -> Result<()> {
        let expert = self.learner.expert()?;
        expert.save_safetensors(&self.expert_path())?;
        let checkpoint = Checkpoint {
            plan: self.plan.clone(),
            iteration: self.iteration,
            learning_rate: self.learner.learning_rate(),
            expert,
            optimiser: self.learner.optimiser()?,
            inputs: self.learner.inputs.clone(),
            courses: self.herd.courses().to_vec(),
        };
        checkpoint.save(&self.folder.join("checkpoint.bin"))
    }

    /// Keeps the expert under a name of its own if its turn has come in this iteration.
    fn keep(&self, per_iteration: u64) -> Result<()> {
        let Some(every) = self.keep_every.filter(|&every| every > 0) else { return Ok(()) };
        let steps = self.iteration * per_iteration;
        if steps / every == (steps - per_iteration) / every {
            return Ok(());
        }
        let path = self.folder.join(format!("expert-{steps}.safetensors"));
        Ok(self.learner.expert()?.save_safetensors(&path)?)
    }

    /// Appends a row to the metrics.
    fn record(
        &self,
        start: Instant,
        per_iteration: u64,
        velocity: f64,
        divergence: f32,
        evaluation: Evaluation,
    ) -> Result<()> {
        use std::io::Write;
        let path = self.folder.join("metrics.csv");
        let header = "steps,seconds,velocity,training_velocity,falls,divergence,learning_rate\n";
        let header = if path.exists() { "" } else { header };
        let row = format!(
            "{},{:.0},{:.4},{velocity:.4},{:.3},{divergence:.4},{:.2e}\n",
            self.iteration * per_iteration,
            start.elapsed().as_secs_f64(),
            evaluation.velocity,
            evaluation.falls,
            self.learner.learning_rate()
        );
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{header}{row}").as_bytes()))
            .map_err(Error::file("write", &path))
    }

    fn expert_path(&self) -> PathBuf {
        Path::new(&self.folder).join("expert.safetensors")
    }
}

/// What a training is started with, in words; a checkpoint of another is not gone on with.
fn plan(settings: &TrainSettings) -> String {
    let TrainSettings { maze, ants, seed, from, rules, actions, gain, .. } = settings;
    let TrainSettings { entropy, discount, .. } = settings;
    let place = maze.map_or("an open floor".to_owned(), |maze| maze.to_string());
    let from = from.as_ref().map_or("nothing".into(), |file| file.path().display().to_string());
    let from = if settings.mirrored { format!("{from} in a mirror") } else { from };
    format!(
        "{ants} ants on {place}, seed {seed}, from {from} with gain {gain:?}; {rules}; {actions}; \
         entropy {entropy}, discount {discount}"
    )
}
