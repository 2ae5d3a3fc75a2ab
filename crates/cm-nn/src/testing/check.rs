//! Values and gradients of an operation against a reference in double precision.

use super::Exact;
use crate::{Backend, Initialiser, Over, Parameters, Result, Var, gradients};

/// Step of the central differences, in double precision.
const STEP: f64 = 1e-5;
/// The same along a direction in many inputs at once, so small that hardly any of them crosses a
/// kink.
const STEP_ALONG: f64 = 1e-8;

/// How close a backend comes to double precision: the largest error of a number, relative to its
/// size plus the typical size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of values.
    pub values: f64,
    /// Of gradients.
    pub gradients: f64,
}

impl Tolerance {
    /// What single precision reaches.
    pub const SINGLE: Self = Self { values: 1e-5, gradients: 1e-4 };
}

/// Backends under test, made from a seed, and how close they must come.
pub struct Suite<B> {
    make: Box<dyn Fn(u64) -> B>,
    /// How close they must come.
    pub tolerance: Tolerance,
}

impl<B: Backend> Suite<B> {
    /// Backends that `make` makes from a seed.
    pub fn new(make: impl Fn(u64) -> B + 'static, tolerance: Tolerance) -> Self {
        Self { make: Box::new(make), tolerance }
    }

    /// A backend with that seed.
    pub fn make(&self, seed: u64) -> B {
        (self.make)(seed)
    }

    /// Checks `operation` against `exact` at `inputs`: its value, and the gradient of a random
    /// weighting of its result with respect to every element of every input, against central
    /// differences of `exact`. The gradients of all inputs together must equal those of each alone,
    /// the other inputs being constants.
    pub fn check(
        &self,
        backend: &B,
        what: &str,
        inputs: &[Exact],
        operation: impl Fn(&[Var<B>]) -> Result<Var<B>>,
        exact: impl Fn(&[Exact]) -> Exact,
    ) -> Result<()> {
        let weights = self.check_value(backend, what, inputs, &operation, &exact)?;
        let found = weighted_gradients(backend, inputs, &weights, &operation)?;
        for (index, found) in found.iter().enumerate() {
            let expected = (0..found.values.len()).map(|element| {
                let moved = |step: f64| {
                    let mut inputs = inputs.to_vec();
                    inputs[index].values[element] += step;
                    exact(&inputs).dot(&weights)
                };
                (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
            });
            let expected = Exact { shape: found.shape, values: expected.collect() };
            found.assert_close(
                &expected,
                self.tolerance.gradients,
                &format!("{what}, gradient {index}"),
            );
        }
        Ok(())
    }

    /// [`check`](Self::check) for large inputs: the gradient only along one random direction in all inputs.
    pub fn check_along(
        &self,
        backend: &B,
        what: &str,
        inputs: &[Exact],
        operation: impl Fn(&[Var<B>]) -> Result<Var<B>>,
        exact: impl Fn(&[Exact]) -> Exact,
    ) -> Result<()> {
        let weights = self.check_value(backend, what, inputs, &operation, &exact)?;
        let found = weighted_gradients(backend, inputs, &weights, &operation)?;
        let directions = inputs.iter().zip(900..).map(|(x, stream)| Exact::normal(x.shape, stream));
        let directions = directions.collect::<Vec<_>>();
        let moved = |step: f64| {
            let mut inputs = inputs.to_vec();
            for (input, direction) in inputs.iter_mut().zip(&directions) {
                let moves = input.values.iter_mut().zip(&direction.values);
                moves.for_each(|(x, direction)| *x += step * direction);
            }
            exact(&inputs).dot(&weights)
        };
        let expected = (moved(STEP_ALONG) - moved(-STEP_ALONG)) / (2.0 * STEP_ALONG);
        let parts = || found.iter().zip(&directions);
        let along = parts().map(|(gradient, direction)| gradient.dot(direction)).sum::<f64>();
        // What the sum of that many terms of random sign typically is.
        let typical = parts().map(|(gradient, _)| gradient.dot(gradient)).sum::<f64>().sqrt();
        let error = (along - expected).abs();
        assert!(
            error <= self.tolerance.gradients * typical,
            "{what}: {along} along, expected {expected}"
        );
        Ok(())
    }

    /// Compares the values and returns random weights of the result's shape.
    fn check_value(
        &self,
        backend: &B,
        what: &str,
        inputs: &[Exact],
        operation: &impl Fn(&[Var<B>]) -> Result<Var<B>>,
        exact: &impl Fn(&[Exact]) -> Exact,
    ) -> Result<Exact> {
        let vars = inputs.iter().map(|input| input.var(backend)).collect::<Result<Vec<_>>>()?;
        let found = Exact::read(&operation(&vars)?)?;
        found.assert_close(&exact(inputs), self.tolerance.values, what);
        Ok(Exact::normal(found.shape, 800))
    }
}

/// The gradients of the weighted result, computed for all inputs at once and for each alone.
fn weighted_gradients<B: Backend>(
    backend: &B,
    inputs: &[Exact],
    weights: &Exact,
    operation: &impl Fn(&[Var<B>]) -> Result<Var<B>>,
) -> Result<Vec<Exact>> {
    let mut sets = Vec::new();
    for input in inputs {
        let mut set = Parameters::new(backend);
        set.create("x", input.shape, Initialiser::ZEROS)?.set(&input.to_f32())?;
        sets.push(set);
    }
    let weights = weights.var(backend)?;
    let run = |wanted: &[&Parameters<B>]| {
        let (_, gradients) = gradients(backend, wanted, || {
            let values = sets.iter().flat_map(Parameters::iter).map(|x| x.value());
            let values = values.collect::<Result<Vec<_>>>()?;
            operation(&values)?.mul(&weights)?.sum(Over::All)
        })?;
        let found = wanted.iter().flat_map(|set| set.iter()).map(|x| gradients.get(x));
        found.flatten().map(|gradient| Exact::read(&gradient)).collect::<Result<Vec<_>>>()
    };
    let together = run(&sets.iter().collect::<Vec<_>>())?;
    assert_eq!(together.len(), inputs.len());
    for (set, together) in sets.iter().zip(&together) {
        assert_eq!(&run(&[set])?[0], together, "the gradient depends on what else is wanted");
    }
    Ok(together)
}
