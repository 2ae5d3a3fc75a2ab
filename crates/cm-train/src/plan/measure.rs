//! A model's distance between states, for many pairs at once.

use cm_learner::{FixedDistance, Learner, StateDistance};
use cm_nn::{Backend, DfdxBackend, Var};

use crate::model::CHUNK;
use crate::{Error, Model, Result};

/// States as the metric compares them.
pub(crate) type Points<B = DfdxBackend> = Var<B>;

/// The distance that a road map is made of: the method's own between states, else the one with
/// zeros where actions belong. A critic's is cut off at 0.
pub(crate) struct Measure<'a, B: Backend = DfdxBackend> {
    pub(super) model: &'a Model,
    backend: &'a B,
    metric: &'a dyn StateDistance<B>,
}

impl<'a> Measure<'a> {
    /// On the CPU. Refuses methods that learn no distance.
    pub(crate) fn new(model: &'a Model) -> Result<Self> {
        let (backend, learner) = model.learner();
        Self::of(model, backend, learner)
    }
}

impl<'a, B: Backend> Measure<'a, B> {
    /// By a learner that has the model's weights.
    pub(crate) fn of(
        model: &'a Model,
        backend: &'a B,
        learner: &'a dyn Learner<B>,
    ) -> Result<Self> {
        let method = model.settings().method.method().title();
        let metric = learner.states().or_else(|| learner.without_action());
        Ok(Self { model, backend, metric: metric.ok_or(Error::NoDistance { method })? })
    }

    /// The same for a few states at a time, if the method's networks can be used like that.
    pub(crate) fn fixed(&self) -> Result<Option<FixedDistance>> {
        Ok(self.metric.fixed()?)
    }

    /// The points of whole states, one after another in their own units.
    pub(crate) fn points(&self, states: &[f32]) -> Result<Points<B>> {
        let width = self.model.dimensions().state();
        self.model.check_rows("states", states.len(), width)?;
        let parts = states.chunks(CHUNK * width).map(|states| {
            let (rows, states) = (states.len() / width, self.model.scaled(states));
            Ok(self.metric.points(&Var::new(self.backend, [rows, width], states)?)?)
        });
        let mut parts = parts.collect::<Result<Vec<_>>>()?;
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(Var::concat_rows(&parts.iter().collect::<Vec<_>>())?),
        }
    }

    /// From every row of points to every row of others, row by row.
    pub(crate) fn pairs(&self, from: &Points<B>, to: &Points<B>) -> Result<Vec<f32>> {
        // So that what is in between stays small.
        let rows = (4_000_000 / to.rows().max(1)).max(1);
        let mut distances = Vec::with_capacity(from.rows() * to.rows());
        let mut first = 0;
        while first < from.rows() {
            let end = (first + rows).min(from.rows());
            let part = self.metric.pairs(&from.slice_rows(first..end)?, to)?;
            for distance in part.to_vec()? {
                distances.push(cut_off(distance)?);
            }
            first = end;
        }
        Ok(distances)
    }

    /// From each row of points to the same row of others.
    pub(crate) fn rows(&self, from: &Points<B>, to: &Points<B>) -> Result<Vec<f32>> {
        self.metric.rows(from, to)?.to_vec()?.into_iter().map(cut_off).collect()
    }
}

/// 0 for a distance below it, which a critic's can be; NaN would pass for that, so it is refused.
pub(super) fn cut_off(distance: f32) -> Result<f32> {
    match distance.is_nan() {
        true => Err(Error::NotANumber),
        false => Ok(distance.max(0.0)),
    }
}

/// Some rows of points, in any order and any number of times; all in their own order are not copied.
///
/// A copy is in memory of the backend's own, which is used again: what is made of numbers from
/// outside each time goes through all of its pool.
pub(crate) fn gather<B: Backend>(
    points: &Points<B>,
    rows: impl IntoIterator<Item = usize>,
) -> Result<Points<B>> {
    // Exact: there are fewer rows than 2^24.
    let rows: Vec<f32> = rows.into_iter().map(|row| row as f32).collect();
    if rows.len() == points.rows() && rows.iter().enumerate().all(|(at, &row)| at as f32 == row) {
        return Ok(points.clone());
    }
    let index = Var::new(points.backend(), [rows.len(), 1], rows)?;
    Ok(points.gather_rows(&index)?)
}
