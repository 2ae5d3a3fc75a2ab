//! Several sets of parameters read and restored together.

use super::{Matrix, Parameter, Parameters, Snapshot};
use crate::{Backend, Result};

/// Sets of parameters on one backend, each with a prefix before its names: what is read with one
/// wait and restored as a whole.
///
/// ```
/// use cm_nn::{DfdxBackend, Initialiser, ParameterSets, Parameters};
///
/// let backend = DfdxBackend::new(0);
/// let [mut first, mut second] = [0; 2].map(|_| Parameters::new(&backend));
/// first.create("x", [1, 1], Initialiser::Constant(1.0))?;
/// second.create("x", [1, 1], Initialiser::Constant(2.0))?;
/// let sets = ParameterSets::new(&backend).with("a/", &first).with("b/", &second);
/// let snapshot = sets.snapshot(0)?;
/// assert_eq!(snapshot.get("b/x").unwrap().values, [2.0]);
/// sets.restore(0, &snapshot)?;
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct ParameterSets<'a, B: Backend> {
    backend: &'a B,
    named: Vec<(String, &'a Parameter<B>)>,
}

impl<'a, B: Backend> ParameterSets<'a, B> {
    /// None yet.
    pub fn new(backend: &'a B) -> Self {
        Self { backend, named: Vec::new() }
    }

    /// And the parameters of `set`, named `<prefix><name>`.
    pub fn with(mut self, prefix: &str, set: &'a Parameters<B>) -> Self {
        let named =
            set.iter().map(|parameter| (format!("{prefix}{}", parameter.name()), parameter));
        self.named.extend(named);
        self
    }

    /// And those of others, with `prefix` before their names.
    pub fn with_all(mut self, prefix: &str, others: ParameterSets<'a, B>) -> Self {
        let named = others.named.into_iter().map(|(name, p)| (format!("{prefix}{name}"), p));
        self.named.extend(named);
        self
    }

    /// Every value on the host: one snapshot per replica. Waits for the device once.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let cells = self.named.iter().map(|(_, parameter)| self.backend.load(parameter.cell()));
        let cells = cells.collect::<Result<Vec<_>>>()?;
        let values = self.backend.read(&cells.iter().collect::<Vec<_>>())?;
        let replica = |replica: usize| {
            let matrices = self.named.iter().zip(&values).map(|((name, parameter), values)| {
                let (shape, values) = (parameter.shape(), values.replica(replica).to_vec());
                (name.clone(), Matrix { shape, values })
            });
            matrices.collect()
        };
        Ok((0..self.backend.seeds().len()).map(replica).collect())
    }

    /// Every value of one replica on the host; empty if there is no such replica.
    pub fn snapshot(&self, replica: usize) -> Result<Snapshot> {
        Ok(self.snapshots()?.into_iter().nth(replica).unwrap_or_default())
    }

    /// Overwrites every parameter of a replica by the matrix of its name. The snapshot must hold
    /// exactly these names and shapes and only finite values; otherwise nothing is changed. What
    /// is there is not read.
    pub fn restore(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        snapshot.check(self.named.iter().map(|(name, p)| (name.as_str(), p.shape())))?;
        let cells = self.named.iter().filter_map(|(name, parameter)| {
            Some((parameter.cell(), snapshot.get(name)?.values.as_slice()))
        });
        self.backend.write(replica, &cells.collect::<Vec<_>>())
    }
}
