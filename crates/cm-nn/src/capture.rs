//! Steps that are run again and again.

use crate::Result;

/// A training step made by [`Backend::capture`](crate::Backend::capture): a closure that a backend
/// calls at every run, or records at the first one and replays.
///
/// Inputs are cells, written between runs. Outputs are the tensors that the closure returns; every
/// run overwrites them.
///
/// ```
/// use cm_nn::{Backend, DfdxBackend, Initialiser, Parameters, Sgd, gradients};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let x = parameters.create("x", [1, 1], Initialiser::Constant(4.0))?;
/// let sgd = Sgd::new(&parameters, 0.25)?;
/// let mut step = backend.capture(|| {
///     let (loss, mut found) = gradients(&backend, &[&parameters], || x.value()?.square())?;
///     sgd.step(&mut found)?;
///     Ok(loss)
/// });
/// assert_eq!(step.run()?.item()?, 16.0);
/// assert_eq!(step.run()?.item()?, 4.0);
/// x.set(&[10.0])?; // what is written between two runs is seen
/// assert_eq!(step.run()?.item()?, 100.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Captured<'a, T> {
    run: Run<'a, T>,
    output: Option<T>,
}

/// Runs the step once and leaves its outputs, or leaves those that a recording overwrites.
type Run<'a, T> = Box<dyn FnMut(Option<T>) -> Result<T> + 'a>;

impl<'a, T> Captured<'a, T> {
    /// For backends: `run` does the step once. It is given the outputs of the run before, if there
    /// was one, and returns those of this run.
    pub fn new(run: impl FnMut(Option<T>) -> Result<T> + 'a) -> Self {
        Self { run: Box::new(run), output: None }
    }

    /// Does the step once. If it fails, the next run begins anew.
    pub fn run(&mut self) -> Result<&T> {
        let output = (self.run)(self.output.take())?;
        Ok(self.output.insert(output))
    }

    /// The outputs of the last run; none before the first one.
    pub fn output(&self) -> Option<&T> {
        self.output.as_ref()
    }
}

/// What was read of one tensor or cell: one slice per replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    values: Vec<f32>,
    each: usize,
}

impl Values {
    /// `replicas` slices of equal length, one after another; at least one.
    pub fn new(values: Vec<f32>, replicas: usize) -> Self {
        let each = values.len() / replicas.max(1);
        Self { values, each }
    }

    /// The values of one replica, row by row; empty if there is no such replica.
    pub fn replica(&self, replica: usize) -> &[f32] {
        self.values.chunks_exact(self.each.max(1)).nth(replica).unwrap_or_default()
    }

    /// How many replicas there are.
    pub fn replicas(&self) -> usize {
        self.values.len() / self.each.max(1)
    }

    /// The values of the only replica; none if there are several.
    pub fn only(self) -> Option<Vec<f32>> {
        (self.values.len() == self.each).then_some(self.values)
    }
}
