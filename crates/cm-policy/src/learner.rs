//! What every method offers to a training loop.

use cm_nn::{Backend, Error, Snapshot, Var};

use crate::{Batch, Group, Result};

/// Named numbers of one training step, each `[1, 1]` and still on the backend: reading one ([`Var::item`]) is what waits for the device.
pub type Metrics<B> = Vec<(&'static str, Var<B>)>;

/// A method: networks, losses and optimisers, made from settings, dimensions, a backend and a seed.
///
/// Its random numbers are counted by the backend's step ([`Backend::step`]), so a run resumes exactly from [`snapshot`](Self::snapshot),
/// [`optimiser_snapshot`](Self::optimiser_snapshot) and that number.
pub trait Learner<B: Backend> {
    /// One training step: every loss at the parameters the step begins with, then every optimiser, then [`Backend::advance`].
    fn step(&self, batch: &Batch<B>) -> Result<Metrics<B>>;

    /// The action the policy prefers at each `state [n, state]` for the goal coordinates `goal [n, goal]`.
    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>>;

    /// How far it is from each `(s, a)` to each row's `(g, a')`, `[n, 1]`, whole goal states; none if the method learns no distance.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        goal_action: &Var<B>,
    ) -> Result<Option<Var<B>>>;

    /// Everything that is learned. Names of parameters are unique over all groups.
    fn groups(&self) -> Vec<&Group<B>>;

    /// Every parameter by its name.
    fn snapshot(&self) -> Result<Snapshot> {
        let mut all = Snapshot::default();
        for group in self.groups() {
            all.extend(group.parameters().snapshot()?);
        }
        Ok(all)
    }

    /// Overwrites every parameter. A snapshot that does not fit is refused and nothing is changed.
    fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        let own = self.snapshot()?;
        check_same_shapes(&own, snapshot)?;
        for group in self.groups() {
            let parameters = group.parameters();
            let part = snapshot.iter().filter(|(name, _)| parameters.get(name).is_some());
            let part = part.map(|(name, matrix)| (name.to_string(), matrix.clone()));
            parameters.restore(&part.collect())?;
        }
        Ok(())
    }

    /// Every optimiser's state: `<group>/first/<parameter>`, `<group>/second/<parameter>` and `<group>/step`.
    fn optimiser_snapshot(&self) -> Result<Snapshot> {
        let mut all = Snapshot::default();
        for group in self.groups() {
            all.extend(group.optimiser_snapshot()?.prefixed(&format!("{}/", group.name())));
        }
        Ok(all)
    }

    /// Overwrites every optimiser's state. A snapshot that does not fit is refused and nothing is changed.
    fn restore_optimiser(&self, snapshot: &Snapshot) -> Result<()> {
        check_same_shapes(&self.optimiser_snapshot()?, snapshot)?;
        for group in self.groups() {
            group.restore_optimiser(&snapshot.under(&format!("{}/", group.name())))?;
        }
        Ok(())
    }
}

/// Refuses a snapshot whose names, shapes or values could not fill what `own` was taken of.
fn check_same_shapes(own: &Snapshot, other: &Snapshot) -> Result<()> {
    for (name, matrix) in own.iter() {
        let Some(found) = other.get(name) else {
            let name = name.to_string();
            return Err(Error::MissingParameter { name, place: "the snapshot" });
        };
        if found.shape != matrix.shape {
            let (name, expected) = (name.to_string(), matrix.shape);
            return Err(Error::ParameterShape { name, expected, found: found.shape });
        }
        if let Some(index) = found.values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (index / matrix.shape[1], index % matrix.shape[1]);
            let (name, value) = (name.to_string(), found.values[index]);
            return Err(Error::NotFinite { name, value, row, column });
        }
    }
    match other.iter().find(|(name, _)| own.get(name).is_none()) {
        Some((name, _)) => Err(Error::UnknownParameter(name.to_string())),
        None => Ok(()),
    }
}
