//! A trained model put to use.

use std::path::Path;

use cm_envs::Rollout;
use cm_learner::{Dimensions, Learner};
use cm_nn::{DfdxBackend, Snapshot, Var};

use crate::{Error, Evaluation, Result, RunFolder, RunSettings, Scaling, World, evaluate};

/// Rows that are worked on at a time, so that memory does not grow with what is asked.
const CHUNK: usize = 4096;

/// A trained model on the CPU, whatever device it was trained on: distances between states and
/// actions towards goals, in the data's own units.
pub struct Model {
    backend: DfdxBackend,
    settings: RunSettings,
    learner: Box<dyn Learner<DfdxBackend>>,
    dimensions: Dimensions,
    scaling: Scaling,
}

impl Model {
    /// The model of a run: the best of its evaluations if `best` and there is one, else the last.
    pub fn load(folder: &RunFolder, best: bool) -> Result<Self> {
        let settings = folder.settings()?;
        let file = folder.best_file();
        let file = if best && file.exists() { file } else { folder.model_file() };
        Self::load_file(settings, &file)
    }

    /// The weights of a safetensors file under the settings of its run.
    pub fn load_file(settings: RunSettings, file: &Path) -> Result<Self> {
        let (scaling, parameters) = Scaling::split(Snapshot::load_safetensors(file)?)?;
        let (states, actions) = (scaling.state_width(), scaling.action_width());
        let goal = settings.task.goal_columns(states);
        let dimensions = Dimensions::new(states, actions, goal)?;
        let backend = DfdxBackend::new(settings.seed);
        let learner = settings.method.learner(&backend, &dimensions)?;
        learner.restore(0, &parameters).map_err(|error| Error::content(file, error.to_string()))?;
        Ok(Self { backend, settings, learner, dimensions, scaling })
    }

    /// The settings of its run.
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Sizes of states, actions and goals.
    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    /// How far it is from each row of `from` to the same row of `to`, whole states one after
    /// another.
    ///
    /// The distance is that between the states with no action at either (zeros), as in the paper's
    /// maps.
    pub fn distances(&self, from: &[f32], to: &[f32]) -> Result<Vec<f32>> {
        let width = self.dimensions.state();
        self.check_rows("from", from.len(), width)?;
        if from.len() != to.len() {
            let what = "to".to_owned();
            return Err(Error::Width { what, expected: from.len(), found: to.len() });
        }
        let mut distances = Vec::with_capacity(from.len() / width);
        for (from, to) in from.chunks(CHUNK * width).zip(to.chunks(CHUNK * width)) {
            let (from, to) = (self.states(from)?, self.states(to)?);
            let shape = [from.rows(), self.dimensions.action()];
            let none = Var::full(&self.backend, shape, 0.0)?;
            let found = self.learner.distance(&from, &none, &to, &none)?;
            let method = self.settings.method.method().title();
            distances.extend(found.ok_or(Error::NoDistance { method })?.to_vec()?);
        }
        Ok(distances)
    }

    /// How far it is from every row of `from` to one state.
    pub fn distances_to(&self, from: &[f32], goal: &[f32]) -> Result<Vec<f32>> {
        self.check_rows("goal", goal.len(), self.dimensions.state())?;
        let rows = from.len() / self.dimensions.state();
        self.distances(from, &goal.repeat(rows))
    }

    /// How far it is from one state to every row of `to`.
    pub fn distances_from(&self, state: &[f32], to: &[f32]) -> Result<Vec<f32>> {
        self.check_rows("state", state.len(), self.dimensions.state())?;
        let rows = to.len() / self.dimensions.state();
        self.distances(&state.repeat(rows), to)
    }

    /// A state of the run's data, which is scaled, in its own units.
    pub fn unscaled(&self, state: &[f32]) -> Vec<f32> {
        self.scaling.unscaled(state)
    }

    /// Lets the policy act in `world`.
    pub fn evaluate(&self, world: &dyn World, plan: &Rollout) -> Result<Evaluation> {
        evaluate(world, self.learner.as_ref(), &self.backend, &self.scaling, plan)
    }

    fn states(&self, rows: &[f32]) -> Result<Var<DfdxBackend>> {
        let width = self.dimensions.state();
        let mut rows = rows.to_vec();
        self.scaling.states(&mut rows);
        Ok(Var::new(&self.backend, [rows.len() / width, width], rows)?)
    }

    pub(crate) fn check_rows(&self, what: &str, found: usize, expected: usize) -> Result<()> {
        if found > 0 && found.is_multiple_of(expected) {
            return Ok(());
        }
        Err(Error::Width { what: what.to_owned(), expected, found })
    }
}
