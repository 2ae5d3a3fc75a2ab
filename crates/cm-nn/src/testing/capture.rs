//! Steps that are captured, and what is done in one go.

use super::{Exact, Suite};
use crate::{
    Activation, Adam, AdamSettings, Backend, Direction, Ema, Error, Initialiser, Mlp, MlpSettings,
    Over, Parameters, Result, Snapshot, Var, gradients,
};

const STEPS: usize = 5;

/// A small contrastive learner with noise, a clip and a target network: one step of it.
pub(super) struct Small<B: Backend> {
    backend: B,
    parameters: Parameters<B>,
    targets: Parameters<B>,
    network: Mlp<B>,
    adam: Adam<B>,
    ema: Ema<B>,
    x: Var<B>,
}

impl<B: Backend> Small<B> {
    pub(super) fn new(backend: &B) -> Result<Self> {
        let [mut parameters, mut targets] = [0; 2].map(|_| Parameters::new(backend));
        let settings = MlpSettings {
            hidden: vec![70, 70],
            activation: Activation::Silu,
            layer_norm: true,
            ..Default::default()
        };
        let network = Mlp::new(&mut parameters, "network", 5, &settings, 64)?;
        Mlp::new(&mut targets, "target", 5, &settings, 64)?;
        let adam = AdamSettings { learning_rate: 1e-3, clip: Some(1.0), ..Default::default() };
        Ok(Self {
            adam: Adam::new(&parameters, adam)?,
            ema: Ema::new(&targets, &parameters, 0.9)?,
            x: Exact::normal([33, 5], 1).var(backend)?,
            backend: backend.clone(),
            parameters,
            targets,
            network,
        })
    }

    /// Returns the loss and the mean size of the features.
    pub(super) fn step(&self) -> Result<[Var<B>; 2]> {
        let (x, rows) = (&self.x, self.x.rows());
        let mut size = None;
        let (loss, mut found) = gradients(&self.backend, &[&self.parameters], || {
            let noise = Var::normal(&self.backend, x.shape(), 0x100)?;
            let moved = x.gather_rows(&Var::permutation(&self.backend, rows, 0x101)?)?;
            let both = Var::concat_rows(&[&x.add(&noise)?, &moved])?;
            let features = self.network.forward(&both)?;
            size = Some(features.abs()?.mean(Over::All)?.stop_gradient());
            let (a, b) = (features.slice_rows(0..rows)?, features.slice_rows(rows..2 * rows)?);
            let distances = a.distance_pairs(&b, cm_quasimetric::Head::MRN, None)?;
            distances.neg()?.info_nce(Direction::Symmetric)
        })?;
        self.adam.step(&mut found)?;
        self.ema.step()?;
        self.backend.advance()?;
        Ok([loss, size.ok_or(Error::NestedGradients)?])
    }

    /// Parameters, targets and the optimiser's state of each replica.
    pub(super) fn state(&self) -> Result<Vec<Snapshot>> {
        let sets = crate::ParameterSets::new(&self.backend);
        let sets = sets.with("", &self.parameters).with("", &self.targets);
        sets.with_all("adam/", self.adam.state()).snapshots()
    }

    pub(super) fn restore(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        let sets = crate::ParameterSets::new(&self.backend);
        let sets = sets.with("", &self.parameters).with("", &self.targets);
        sets.with_all("adam/", self.adam.state()).restore(replica, snapshot)
    }
}

/// [`Backend::capture`]: runs again and again are what eager steps are, bit for bit, and the
/// outputs are those of the last run.
pub fn captured_steps<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let (eager, backend) = (Small::new(&suite.make(1))?, suite.make(1));
    let learner = Small::new(&backend)?;
    let mut step = backend.capture(|| learner.step());
    assert!(step.output().is_none());
    for number in 1..=STEPS {
        let expected = eager.step()?.map(|output| output.item());
        let found = step.run()?.each_ref().map(|output| output.item());
        for (found, expected) in found.into_iter().zip(expected) {
            assert_eq!(found?.to_bits(), expected?.to_bits(), "outputs of step {number}");
        }
    }
    assert_eq!(learner.state()?, eager.state()?);
    assert_eq!(backend.step()?, STEPS as u64);
    // The step is set between runs, as a resumed run does.
    backend.set_step(40)?;
    eager.backend.set_step(40)?;
    step.run()?;
    eager.step()?;
    assert_eq!(learner.state()?, eager.state()?);
    Ok(())
}

/// A cell that is written between two runs is seen; one that the step itself moves keeps moving.
pub fn captured_cells<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut cells = Parameters::new(&backend);
    let x = cells.create("x", [1, 2], Initialiser::Constant(1.0))?;
    let mut step = backend.capture(|| x.value()?.scale(2.0)?.sum(Over::All));
    assert_eq!(step.run()?.item()?, 4.0);
    assert_eq!(step.run()?.item()?, 4.0);
    x.set(&[3.0, -1.0])?;
    assert_eq!(step.run()?.item()?, 4.0);
    x.set(&[3.0, 5.0])?;
    assert_eq!(step.run()?.item()?, 16.0);
    assert_eq!(step.output().map(|output| output.item()).transpose()?, Some(16.0));
    Ok(())
}

/// Uploads, reads and what else a recording could not repeat are refused inside a step, which
/// leaves the backend as it was.
pub fn captured_uploads<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut cells = Parameters::new(&backend);
    let x = cells.create("x", [1, 1], Initialiser::Constant(3.0))?;
    let attempts: [(&str, &dyn Fn() -> Result<()>); 7] = [
        ("tensor", &|| Var::new(&backend, [1, 1], vec![1.0]).map(drop)),
        ("read", &|| x.value()?.item().map(drop)),
        ("cell", &|| backend.cell([1, 1], vec![vec![0.0]]).map(drop)),
        ("write", &|| x.set(&[1.0])),
        ("step", &|| backend.step().map(drop)),
        ("set_step", &|| backend.set_step(1)),
        ("capture", &|| backend.capture(|| Ok(())).run().map(drop)),
    ];
    for (what, attempt) in attempts {
        let refused = backend.capture(attempt).run().map(drop);
        assert!(matches!(refused, Err(Error::InsideCapture { .. })), "{what}: {refused:?}");
    }
    let message = backend.capture(|| Var::new(&backend, [1, 1], vec![1.0])).run().map(drop);
    let message = message.map_err(|error| error.to_string());
    assert!(message.is_err_and(|message| message.contains("host values")));
    // What failed inside a step does not stay inside.
    assert_eq!(Var::new(&backend, [1, 1], vec![1.0])?.item()?, 1.0);
    assert_eq!(x.to_vec()?, [3.0]);
    // A step that failed once can succeed later.
    let fails = std::cell::Cell::new(true);
    let mut step = backend.capture(|| match fails.get() {
        true => x.value()?.matmul(&Var::full(&backend, [3, 1], 0.0)?),
        false => x.value()?.square(),
    });
    assert!(matches!(step.run().map(drop), Err(Error::Shape { .. })));
    fails.set(false);
    assert_eq!(step.run()?.item()?, 9.0);
    Ok(())
}

/// [`Backend::full`]: one value everywhere, inside a step and outside, and a constant.
pub fn full<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for shape in [[1, 1], [3, 7], [301, 130]] {
        let values = Var::full(&backend, shape, -1.5)?.to_vec()?;
        assert_eq!(values, vec![-1.5; shape[0] * shape[1]]);
    }
    let mut step = backend.capture(|| Var::full(&backend, [2, 2], 0.25));
    assert_eq!(step.run()?.to_vec()?, [0.25; 4]);
    assert!(matches!(Var::full(&backend, [0, 2], 1.0), Err(Error::Shape { .. })));
    Ok(())
}

/// [`Backend::read`]: several tensors of different sizes at once, each whole and in order.
pub fn reads_together<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let exact = [[1, 1], [33, 7], [2, 130]].map(|shape| Exact::normal(shape, 5));
    let vars = exact.iter().map(|exact| exact.var(&backend)).collect::<Result<Vec<_>>>()?;
    let values = Var::read(&vars.iter().collect::<Vec<_>>())?;
    assert_eq!(values.len(), 3);
    for (values, exact) in values.iter().zip(&exact) {
        assert_eq!((values.replicas(), values.replica(0)), (1, exact.to_f32().as_slice()));
        assert!(values.replica(1).is_empty());
    }
    assert!(Var::<B>::read(&[])?.is_empty());
    Ok(())
}
