//! A trained model put to use.

mod acting;
mod by_actions;
mod composed;
mod extras;
mod places;

use std::path::Path;

use cm_learner::{Dimensions, Learner, StateDistance};
use cm_nn::{DfdxBackend, Snapshot, Var};
use xxhash_rust::xxh3::Xxh3;

pub(crate) use self::extras::Extras;
pub use self::places::Places;
use crate::plan::Roads;
use crate::{Calibration, Error, Method, ReadOut, Result, RunFolder, RunSettings, Scaling, Steps};

/// Rows that are worked on at a time, so that memory does not grow with what is asked.
pub(crate) const CHUNK: usize = 4096;

/// A trained model on the CPU, whatever device it was trained on: distances between states and
/// actions towards goals, in the data's own units.
pub struct Model {
    backend: DfdxBackend,
    settings: RunSettings,
    learner: Box<dyn Learner<DfdxBackend>>,
    dimensions: Dimensions,
    scaling: Scaling,
    extras: Extras,
}

impl Model {
    /// The model of a run: the best of its evaluations (or of its looks at held-out trajectories)
    /// if `best` and there is one, else the last.
    pub fn load(folder: &RunFolder, best: bool) -> Result<Self> {
        let settings = folder.settings()?;
        let file = folder.best_file();
        let file = if best && file.exists() { file } else { folder.model_file() };
        Self::load_file(settings, &file)
    }

    /// The weights of a safetensors file under the settings of its run.
    pub fn load_file(settings: RunSettings, file: &Path) -> Result<Self> {
        let (scaling, stored) = Scaling::split(Snapshot::load_safetensors(file)?)?;
        let (states, actions) = (scaling.state_width(), scaling.action_width());
        let (extras, parameters) = Extras::split(stored, states, actions)?;
        let goal = settings.task.goal_columns(states);
        let dimensions = Dimensions::new(states, actions, goal)?;
        let backend = DfdxBackend::new(settings.seed);
        let learner = settings.method.learner(&backend, &dimensions)?;
        learner.restore(0, &parameters).map_err(|error| Error::content(file, error.to_string()))?;
        Ok(Self { backend, settings, learner, dimensions, scaling, extras })
    }

    /// A model with these weights, of a run that is under way.
    pub(crate) fn of_parameters(
        settings: &RunSettings,
        dimensions: &Dimensions,
        scaling: &Scaling,
        parameters: &Snapshot,
    ) -> Result<Self> {
        let backend = DfdxBackend::new(settings.seed);
        let learner = settings.method.learner(&backend, dimensions)?;
        learner.restore(0, parameters)?;
        let (dimensions, scaling) = (dimensions.clone(), scaling.clone());
        let (settings, extras) = (settings.clone(), Extras::default());
        Ok(Self { backend, settings, learner, dimensions, scaling, extras })
    }

    /// The settings of its run.
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Sizes of states, actions and goals.
    pub fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }

    /// The same model read out in another way, as far as it can be.
    pub fn with_read_out(mut self, read_out: ReadOut) -> Self {
        self.settings.read_out = read_out;
        self
    }

    /// What [`distances`](Self::distances) gives: what the settings say, as far as the model has it.
    pub fn read_out(&self) -> ReadOut {
        let (states, roads) = (self.learner.states().is_some(), self.extras.roads.is_some());
        let actions = !self.extras.goal_actions.is_empty();
        match self.settings.read_out {
            ReadOut::Composed if states && roads => ReadOut::Composed,
            ReadOut::Composed | ReadOut::States if states => ReadOut::States,
            ReadOut::DataActions if actions => ReadOut::DataActions,
            _ => ReadOut::NoAction,
        }
    }

    /// Whether the triangle inequality holds exactly for what [`distances`](Self::distances) gives.
    pub fn is_quasimetric(&self) -> bool {
        let (method, read_out) = (self.settings.method.method(), self.read_out());
        // TMD compares pairs of a state and an action with states: nothing is 0 from itself.
        let of_states = read_out != ReadOut::NoAction || method != Method::Tmd;
        method.is_quasimetric() && read_out.is_quasimetric() && of_states
    }

    /// Whether there is a distance between states; behavioural cloning learns none.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    /// use cm_train::{Device, Method, Model, RunFolder, RunSettings, train};
    ///
    /// let scratch = tempfile::tempdir().unwrap();
    /// for (method, wanted) in [(Method::Cmd1, true), (Method::Gcbc, false)] {
    ///     let settings = RunSettings::tiny_plane(method, 0);
    ///     let folder = RunFolder::new(scratch.path().join(method.key()));
    ///     let task = settings.task.open()?;
    ///     train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |_| {})?;
    ///     assert_eq!(Model::load(&folder, false)?.has_distance(), wanted);
    /// }
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn has_distance(&self) -> bool {
        let somewhere = vec![0.0; self.dimensions.state()];
        self.distances(&somewhere, &somewhere).is_ok()
    }

    /// The share of triples that violated the triangle inequality when training ended, if it does
    /// not hold exactly.
    pub fn violations(&self) -> Option<f32> {
        self.extras.violations.filter(|_| !self.is_quasimetric())
    }

    /// What the distances are in steps; none if nothing was held out or training has not ended.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.extras.calibration.as_ref()
    }

    /// A distance in steps, as [`calibration`](Self::calibration) says.
    pub fn steps(&self, distance: f32) -> Option<Steps> {
        self.calibration().and_then(|calibration| calibration.steps(distance))
    }

    /// The ways of the data that distances are composed of, if they are.
    pub fn roads(&self) -> Option<&Roads> {
        self.extras.roads.as_ref().filter(|_| self.read_out() == ReadOut::Composed)
    }

    /// How far it is from each row of `from` to the same row of `to`, whole states one after
    /// another, by the run's [`ReadOut`]. Infinite where no way is known.
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
            distances.extend(match self.read_out() {
                ReadOut::NoAction => self.without_action(&from, &to)?,
                ReadOut::DataActions => self.with_data_actions(&from, &to)?,
                ReadOut::States | ReadOut::Composed => self.between_states(&from, &to)?,
            });
        }
        if let Some(roads) = self.roads() {
            self.compose(roads, from, to, &mut distances);
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

    /// Whether the method learns a distance that a road map can be made of.
    pub(crate) fn can_plan(&self) -> bool {
        self.learner.states().or_else(|| self.learner.without_action()).is_some()
    }

    /// A checksum of every parameter.
    pub(crate) fn checksum(&self) -> Result<u64> {
        let mut sum = Xxh3::new();
        for (name, matrix) in self.learner.snapshot(0)?.iter() {
            sum.update(name.as_bytes());
            matrix.values.iter().for_each(|value| sum.update(&value.to_le_bytes()));
        }
        Ok(sum.digest())
    }

    /// The metric on states alone.
    fn between_states(&self, from: &Var<DfdxBackend>, to: &Var<DfdxBackend>) -> Result<Vec<f32>> {
        let metric = self.metric()?;
        let found = metric.rows(&metric.points(from)?, &metric.points(to)?)?;
        Ok(found.to_vec()?)
    }

    fn metric(&self) -> Result<&dyn StateDistance<DfdxBackend>> {
        let method = self.settings.method.method().title();
        self.learner.states().ok_or(Error::NoDistance { method })
    }

    pub(crate) fn learner(&self) -> (&DfdxBackend, &dyn Learner<DfdxBackend>) {
        (&self.backend, self.learner.as_ref())
    }

    pub(crate) fn set_extras(&mut self, extras: Extras) {
        self.extras = extras;
    }

    pub(crate) fn states(&self, rows: &[f32]) -> Result<Var<DfdxBackend>> {
        let width = self.dimensions.state();
        let mut rows = rows.to_vec();
        self.scaling.states(&mut rows);
        Ok(Var::new(&self.backend, [rows.len() / width, width], rows)?)
    }

    /// States one after another, in their own units, as the model sees them.
    pub(crate) fn scaled(&self, states: &[f32]) -> Vec<f32> {
        let mut states = states.to_vec();
        self.scaling.states(&mut states);
        states
    }

    pub(crate) fn check_rows(&self, what: &str, found: usize, expected: usize) -> Result<()> {
        if found > 0 && found.is_multiple_of(expected) {
            return Ok(());
        }
        Err(Error::Width { what: what.to_owned(), expected, found })
    }
}

/// A barely trained model of a small world, for tests.
#[cfg(test)]
pub(crate) fn barely_trained(method: Method) -> (Model, crate::Task) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = RunFolder::new(scratch.path().join("run"));
    let settings = RunSettings::tiny_plane(method, 0);
    let task = settings.task.open().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    crate::train(crate::Device::Cpu, &settings, &task, &folder, &stop, |_| {}).unwrap();
    (Model::load(&folder, false).unwrap(), task)
}
