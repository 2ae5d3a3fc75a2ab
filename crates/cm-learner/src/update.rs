//! One training step: named losses, then every optimiser.

use cm_nn::{Backend, Gradients, Parameter, Var, gradients};

use crate::{Group, Result};

/// Named numbers of one training step, each `[1, 1]` and still on the backend: reading them
/// ([`Var::read`]) is what waits for the device.
pub type Metrics<B> = Vec<(&'static str, Var<B>)>;

/// One training step in the making: [`minimise`](Self::minimise) every loss at the parameters that
/// the step begins with; [`finish`](Self::finish) moves them all.
///
/// ```
/// use cm_learner::{Group, Update};
/// use cm_nn::{Backend, DfdxBackend, Initialiser, Parameters};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let x = parameters.create("x", [1, 1], Initialiser::Constant(3.0))?;
/// let group = Group::sgd("x", parameters, 0.25)?;
///
/// let mut update = Update::new(&backend);
/// update.minimise("loss", &[&group], |metrics| {
///     metrics.push(("twice", x.value()?.scale(2.0)?.stop_gradient()));
///     x.value()?.square()
/// })?;
/// let metrics = update.finish(&[&group])?;
/// assert_eq!((metrics[0].0, metrics[0].1.item()?), ("twice", 6.0));
/// assert_eq!((metrics[1].0, metrics[1].1.item()?), ("loss", 9.0));
/// assert_eq!((x.to_vec()?, backend.step()?), (vec![1.5], 1));
/// # Ok::<(), cm_learner::Error>(())
/// ```
pub struct Update<B: Backend> {
    backend: B,
    gradients: Gradients<B>,
    metrics: Metrics<B>,
    losses: Metrics<B>,
}

impl<B: Backend> Update<B> {
    /// With no loss yet.
    pub fn new(backend: &B) -> Self {
        let gradients = Gradients::none(backend);
        Self { backend: backend.clone(), gradients, metrics: Vec::new(), losses: Vec::new() }
    }

    /// Differentiates a `[1, 1]` loss by the parameters of `groups` alone. What the loss adds to
    /// the metrics is recorded, and its value under `name`. A group has one loss.
    pub fn minimise(
        &mut self,
        name: &'static str,
        groups: &[&Group<B>],
        loss: impl FnOnce(&mut Metrics<B>) -> Result<Var<B>>,
    ) -> Result<()> {
        let found = self.differentiate(name, groups, loss)?;
        self.gradients.extend(found)
    }

    /// A further loss of groups that may have one already: their gradients add up. Everything else
    /// as in [`minimise`](Self::minimise).
    pub fn minimise_also(
        &mut self,
        name: &'static str,
        groups: &[&Group<B>],
        loss: impl FnOnce(&mut Metrics<B>) -> Result<Var<B>>,
    ) -> Result<()> {
        let found = self.differentiate(name, groups, loss)?;
        self.gradients.add(found)
    }

    /// The gradient with respect to `parameter` so far; none if no loss was about it.
    pub fn gradient(&self, parameter: &Parameter<B>) -> Option<Var<B>> {
        self.gradients.get(parameter)
    }

    /// The losses so far, by their names.
    pub fn losses(&self) -> &[(&'static str, Var<B>)] {
        &self.losses
    }

    /// Moves every group and advances the backend's step. Averages of where parameters were come
    /// first, averages of where they are now last. Returns what the losses recorded, then the
    /// losses.
    pub fn finish(mut self, groups: &[&Group<B>]) -> Result<Metrics<B>> {
        groups.iter().try_for_each(|group| group.follow_before())?;
        groups.iter().try_for_each(|group| group.descend(&mut self.gradients))?;
        groups.iter().try_for_each(|group| group.follow())?;
        self.backend.advance()?;
        self.metrics.extend(self.losses);
        Ok(self.metrics)
    }

    fn differentiate(
        &mut self,
        name: &'static str,
        groups: &[&Group<B>],
        loss: impl FnOnce(&mut Metrics<B>) -> Result<Var<B>>,
    ) -> Result<Gradients<B>> {
        let wanted = groups.iter().map(|group| group.parameters()).collect::<Vec<_>>();
        let (value, found) = gradients(&self.backend, &wanted, || loss(&mut self.metrics))?;
        self.losses.push((name, value));
        Ok(found)
    }
}
