//! What every method offers to a training loop.

use cm_nn::{Backend, ParameterSets, Snapshot, Var};

use crate::{Dimensions, Group, Metrics, Result, StateDistance, Transitions, Update};

/// A method: networks, losses and optimisers, made from settings, dimensions and a backend.
///
/// It is written for one seed and runs for every replica of its backend. Its random numbers are
/// counted by the backend's step ([`Backend::step`]), so a run resumes exactly from
/// [`snapshot`](Self::snapshot), [`optimiser_snapshot`](Self::optimiser_snapshot) and that number.
pub trait Learner<B: Backend> {
    /// Hands every loss of a training step to `update`.
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()>;

    /// The action the policy prefers at each `state [n, state]` for the goal coordinates `goal [n,
    /// goal]`.
    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>>;

    /// How far it is from each `(s, a)` to each row's `(g, a')`, `[n, 1]`, whole goal states; none
    /// if the method learns no distance.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        goal_action: &Var<B>,
    ) -> Result<Option<Var<B>>>;

    /// The distance between states alone; none if the method learns none.
    fn states(&self) -> Option<&dyn StateDistance<B>> {
        None
    }

    /// [`distance`](Self::distance) with zeros where actions belong, at both ends, as a comparison of
    /// points: many distances between few states then cost few networks. None if the method learns
    /// no such distance; one that does without actions has [`states`](Self::states) instead.
    ///
    /// It is a quasimetric if the method's distance is one; that of a critic may be negative.
    fn without_action(&self) -> Option<&dyn StateDistance<B>> {
        None
    }

    /// Everything that is learned, at least one group. Names of parameters are unique over all.
    fn groups(&self) -> Vec<&Group<B>>;

    /// Sizes of what it sees.
    fn dimensions(&self) -> &Dimensions;

    /// One training step: every loss at the parameters the step begins with, then every optimiser,
    /// then [`Backend::advance`]. What [`Backend::capture`] records.
    fn step(&self, batch: &Transitions<B>) -> Result<Metrics<B>> {
        batch.check(self.dimensions())?;
        let mut update = Update::new(batch.state.backend());
        self.losses(batch, &mut update)?;
        update.finish(&self.groups())
    }

    /// Every parameter by its name.
    fn parameters(&self) -> ParameterSets<'_, B> {
        let groups = self.groups();
        let sets = ParameterSets::new(groups[0].parameters().backend());
        groups.into_iter().fold(sets, |sets, group| sets.with("", group.parameters()))
    }

    /// Every optimiser's state: `<group>/first/<parameter>`, `<group>/second/<parameter>` and
    /// `<group>/step`.
    fn optimiser_state(&self) -> ParameterSets<'_, B> {
        let groups = self.groups();
        let sets = ParameterSets::new(groups[0].parameters().backend());
        groups.into_iter().fold(sets, |sets, group| {
            sets.with_all(&format!("{}/", group.name()), group.optimiser_state())
        })
    }

    /// A replica's parameters. Waits for the device once.
    fn snapshot(&self, replica: usize) -> Result<Snapshot> {
        self.parameters().snapshot(replica)
    }

    /// Overwrites a replica's parameters. A snapshot that does not fit is refused and nothing is
    /// changed.
    fn restore(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        self.parameters().restore(replica, snapshot)
    }

    /// A replica's optimisers. Waits for the device once.
    fn optimiser_snapshot(&self, replica: usize) -> Result<Snapshot> {
        self.optimiser_state().snapshot(replica)
    }

    /// Overwrites a replica's optimisers. A snapshot that does not fit is refused and nothing is
    /// changed.
    fn restore_optimiser(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        self.optimiser_state().restore(replica, snapshot)
    }
}
