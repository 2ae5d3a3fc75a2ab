//! Several seeds at once.

use std::rc::Rc;

use cm_quasimetric::Head;

use super::capture::Small;
use crate::backend::AdamCells;
use crate::{
    Activation, AdamSettings, Axis, Backend, Captured, Direction, Distribution, Error, Initialiser,
    Map, Over, Pairing, Parameters, Reduce, Result, Shape, Values, Var, Zip,
};

/// Several seeds on a backend with replicas are the same seeds on backends of their own, bit for
/// bit; replicas are read, written and restored one by one.
pub fn replicas<B: Backend, M: Backend>(
    single: impl Fn(u64) -> B,
    several: impl Fn(&[u64]) -> Result<M>,
) -> Result<()> {
    let seeds = [3, 8, 5];
    let alone = |seed| {
        let learner = Small::new(&single(seed))?;
        let losses = (0..3).map(|_| learner.step()?[0].item()).collect::<Result<Vec<_>>>()?;
        Ok((losses, learner.state()?.remove(0)))
    };
    let alone = seeds.into_iter().map(alone).collect::<Result<Vec<_>>>()?;

    let backend = several(&seeds)?;
    assert_eq!(backend.seeds(), seeds);
    let learner = Small::new(&backend)?;
    let beginning = learner.state()?;
    let mut step = backend.capture(|| learner.step());
    for number in 0..3 {
        let [loss, size] = step.run()?;
        let values = Var::read(&[loss, size])?;
        for (replica, (losses, _)) in alone.iter().enumerate() {
            assert_eq!(values[0].replica(replica), &losses[number..=number], "replica {replica}");
        }
        assert!(loss.item().is_err(), "a read must say which replica");
    }
    let state = learner.state()?;
    for (replica, (_, expected)) in alone.iter().enumerate() {
        assert_eq!(&state[replica], expected, "replica {replica}");
    }
    // One replica goes back to the beginning, the others stay.
    learner.restore(1, &beginning[1])?;
    assert_eq!(learner.state()?, [state[0].clone(), beginning[1].clone(), state[2].clone()]);

    let mut cells = Parameters::new(&backend);
    let x = cells.create("x", [1, 2], Initialiser::Constant(1.0))?;
    backend.write(2, &[(x.cell(), &[7.0, 8.0])])?;
    let doubled = Var::read(&[&x.value()?.scale(2.0)?])?;
    assert_eq!(doubled[0].replica(0), [2.0, 2.0]);
    assert_eq!(doubled[0].replica(2), [14.0, 16.0]);
    assert!(matches!(backend.write(3, &[(x.cell(), &[0.0; 2])]), Err(Error::Replicas { .. })));
    Ok(())
}

/// Backends of one seed each, side by side, as one backend with replicas: what the replicas of any
/// other backend must equal. It runs eagerly.
pub struct Replicated<B> {
    replicas: Rc<Vec<B>>,
    seeds: Rc<[u64]>,
}

impl<B> Clone for Replicated<B> {
    fn clone(&self) -> Self {
        Self { replicas: self.replicas.clone(), seeds: self.seeds.clone() }
    }
}

impl<B: Backend> Replicated<B> {
    /// One backend for each of the seeds, of which there must be one at least.
    pub fn new(seeds: &[u64], make: impl Fn(u64) -> B) -> Result<Self> {
        if seeds.is_empty() {
            let (what, expected) = ("seeds of a backend", "at least one".to_owned());
            return Err(Error::Replicas { what, expected, found: 0 });
        }
        let replicas = Rc::new(seeds.iter().map(|&seed| make(seed)).collect());
        Ok(Self { replicas, seeds: seeds.into() })
    }

    /// The same on every replica.
    fn each<T>(&self, f: impl FnMut((usize, &B)) -> Result<T>) -> Result<Vec<T>> {
        self.replicas.iter().enumerate().map(f).collect()
    }

    /// Opens the gradients of the replicas from `first` on inside one another, so that the loss
    /// runs once with all of them open.
    fn nested(
        &self,
        first: usize,
        wanted: &[Vec<B::Cell>],
        loss: &mut dyn FnMut() -> Result<Vec<B::Tensor>>,
        losses: &mut Vec<B::Tensor>,
        found: &mut Vec<Vec<B::Tensor>>,
    ) -> Result<()> {
        let Some(backend) = self.replicas.get(first) else {
            *losses = loss()?;
            return Ok(());
        };
        let gradients = backend.gradients(&wanted[first], || {
            self.nested(first + 1, wanted, loss, losses, found)?;
            Ok(losses[first].clone())
        })?;
        found.push(gradients);
        Ok(())
    }
}

/// Row `r` of the result is what replica `r` has of each entry.
fn by_replica<T: Clone>(entries: &[Vec<T>], replicas: usize) -> Vec<Vec<T>> {
    (0..replicas).map(|r| entries.iter().map(|entry| entry[r].clone()).collect()).collect()
}

impl<B: Backend> Backend for Replicated<B> {
    type Tensor = Vec<B::Tensor>;
    type Cell = Vec<B::Cell>;

    fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    fn shape(x: &Self::Tensor) -> Shape {
        B::shape(&x[0])
    }

    fn tensor(&self, shape: Shape, values: Vec<f32>) -> Result<Self::Tensor> {
        self.each(|(_, backend)| backend.tensor(shape, values.clone()))
    }

    fn full(&self, shape: Shape, value: f32) -> Result<Self::Tensor> {
        self.each(|(_, backend)| backend.full(shape, value))
    }

    fn read(&self, tensors: &[&Self::Tensor]) -> Result<Vec<Values>> {
        let read = self.each(|(r, backend)| {
            backend.read(&tensors.iter().map(|tensor| &tensor[r]).collect::<Vec<_>>())
        })?;
        let together = |index: usize| {
            let values = read.iter().flat_map(|values| values[index].replica(0).iter().copied());
            Values::new(values.collect(), read.len())
        };
        Ok((0..tensors.len()).map(together).collect())
    }

    fn cell(&self, shape: Shape, values: Vec<Vec<f32>>) -> Result<Self::Cell> {
        if values.len() != self.replicas.len() {
            let expected = format!("one set for each of {} replicas", self.replicas.len());
            let what = "values of a cell";
            return Err(Error::Replicas { what, expected, found: values.len() });
        }
        self.each(|(r, backend)| backend.cell(shape, vec![values[r].clone()]))
    }

    fn write(&self, replica: usize, cells: &[(&Self::Cell, &[f32])]) -> Result<()> {
        let Some(backend) = self.replicas.get(replica) else {
            let expected = format!("one below {}", self.replicas.len());
            let what = "the replica to write";
            return Err(Error::Replicas { what, expected, found: replica });
        };
        let cells = cells.iter().map(|(cell, values)| (&cell[replica], *values));
        backend.write(0, &cells.collect::<Vec<_>>())
    }

    fn capture<'a, T: 'a>(&self, step: impl FnMut() -> Result<T> + 'a) -> Captured<'a, T> {
        // The first replica refuses what must not happen inside.
        self.replicas[0].capture(step)
    }

    fn load(&self, cell: &Self::Cell) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.load(&cell[r]))
    }

    fn gradients(
        &self,
        wanted: &[Self::Cell],
        loss: impl FnOnce() -> Result<Self::Tensor>,
    ) -> Result<Vec<Self::Tensor>> {
        let by_replica_wanted = by_replica(wanted, self.replicas.len());
        let (mut loss, mut losses, mut found) = (Some(loss), Vec::new(), Vec::new());
        let mut once = || loss.take().ok_or(Error::NestedGradients)?();
        self.nested(0, &by_replica_wanted, &mut once, &mut losses, &mut found)?;
        // The innermost, which is the last replica, was done first.
        found.reverse();
        Ok(by_replica(&found, wanted.len()))
    }

    fn stop_gradient(&self, x: &Self::Tensor) -> Self::Tensor {
        self.replicas.iter().zip(x).map(|(backend, x)| backend.stop_gradient(x)).collect()
    }

    fn linear(
        &self,
        x: &Self::Tensor,
        w: &Self::Tensor,
        b: Option<&Self::Tensor>,
        activation: Activation,
    ) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.linear(&x[r], &w[r], b.map(|b| &b[r]), activation))
    }

    fn layer_norm(
        &self,
        x: &Self::Tensor,
        gain: &Self::Tensor,
        bias: &Self::Tensor,
        epsilon: f32,
    ) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.layer_norm(&x[r], &gain[r], &bias[r], epsilon))
    }

    fn affine(&self, x: &Self::Tensor, scale: f32, shift: f32) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.affine(&x[r], scale, shift))
    }

    fn map(&self, x: &Self::Tensor, f: Map) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.map(&x[r], f))
    }

    fn zip(&self, x: &Self::Tensor, y: &Self::Tensor, f: Zip) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.zip(&x[r], &y[r], f))
    }

    fn reduce(&self, x: &Self::Tensor, over: Over, f: Reduce) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.reduce(&x[r], over, f))
    }

    fn concat(&self, parts: &[&Self::Tensor], axis: Axis) -> Result<Self::Tensor> {
        self.each(|(r, backend)| {
            backend.concat(&parts.iter().map(|part| &part[r]).collect::<Vec<_>>(), axis)
        })
    }

    fn slice(
        &self,
        x: &Self::Tensor,
        axis: Axis,
        start: usize,
        count: usize,
    ) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.slice(&x[r], axis, start, count))
    }

    fn roll(&self, x: &Self::Tensor, shift: usize) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.roll(&x[r], shift))
    }

    fn gather(&self, x: &Self::Tensor, index: &Self::Tensor) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.gather(&x[r], &index[r]))
    }

    fn transpose(&self, x: &Self::Tensor) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.transpose(&x[r]))
    }

    fn diagonal(&self, x: &Self::Tensor) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.diagonal(&x[r]))
    }

    fn quasimetric(
        &self,
        head: Head,
        pairing: Pairing,
        x: &Self::Tensor,
        y: &Self::Tensor,
        logit: Option<&Self::Tensor>,
    ) -> Result<Self::Tensor> {
        self.each(|(r, backend)| {
            backend.quasimetric(head, pairing, &x[r], &y[r], logit.map(|logit| &logit[r]))
        })
    }

    fn info_nce(&self, logits: &Self::Tensor, direction: Direction) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.info_nce(&logits[r], direction))
    }

    fn tanh_normal_log_density(
        &self,
        mean: &Self::Tensor,
        scale: &Self::Tensor,
        action: &Self::Tensor,
    ) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.tanh_normal_log_density(&mean[r], &scale[r], &action[r]))
    }

    fn draw(&self, shape: Shape, distribution: Distribution, stream: u32) -> Result<Self::Tensor> {
        self.each(|(_, backend)| backend.draw(shape, distribution, stream))
    }

    fn categorical(&self, logits: &Self::Tensor, stream: u32) -> Result<Self::Tensor> {
        self.each(|(r, backend)| backend.categorical(&logits[r], stream))
    }

    fn permutation(&self, n: usize, stream: u32) -> Result<Self::Tensor> {
        self.each(|(_, backend)| backend.permutation(n, stream))
    }

    fn adam(
        &self,
        settings: &AdamSettings,
        state: AdamCells<'_, Self>,
        gradients: &[Self::Tensor],
    ) -> Result<()> {
        let split = |cells: &[Vec<B::Cell>]| by_replica(cells, self.replicas.len());
        let (parameters, first) = (split(state.parameters), split(state.first));
        let (second, gradients) = (split(state.second), by_replica(gradients, self.replicas.len()));
        self.each(|(r, backend)| {
            let cells = AdamCells {
                parameters: &parameters[r],
                first: &first[r],
                second: &second[r],
                step: &state.step[r],
            };
            backend.adam(settings, cells, &gradients[r])
        })?;
        Ok(())
    }

    fn sgd(
        &self,
        learning_rate: f32,
        cells: &[Self::Cell],
        gradients: &[Self::Tensor],
    ) -> Result<()> {
        let replicas = self.replicas.len();
        let (cells, gradients) = (by_replica(cells, replicas), by_replica(gradients, replicas));
        self.each(|(r, backend)| backend.sgd(learning_rate, &cells[r], &gradients[r]))?;
        Ok(())
    }

    fn blend(&self, decay: f32, targets: &[Self::Cell], sources: &[Self::Cell]) -> Result<()> {
        let replicas = self.replicas.len();
        let (targets, sources) = (by_replica(targets, replicas), by_replica(sources, replicas));
        self.each(|(r, backend)| backend.blend(decay, &targets[r], &sources[r]))?;
        Ok(())
    }

    fn step(&self) -> Result<u64> {
        self.replicas[0].step()
    }

    fn set_step(&self, step: u64) -> Result<()> {
        self.each(|(_, backend)| backend.set_step(step)).map(drop)
    }

    fn advance(&self) -> Result<()> {
        self.each(|(_, backend)| backend.advance()).map(drop)
    }
}
