//! Named parameters.

mod safetensors;
mod sets;
mod snapshot;

use std::sync::atomic::{AtomicU64, Ordering};

pub use sets::ParameterSets;
pub use snapshot::{Matrix, Snapshot};

use crate::var::{check_length, only};
use crate::{Backend, Error, Initialiser, Result, Shape, Var};

/// One named matrix that an optimiser may move. Cloning shares it.
pub struct Parameter<B: Backend> {
    name: std::rc::Rc<str>,
    id: u64,
    shape: Shape,
    backend: B,
    cell: B::Cell,
}

impl<B: Backend> Clone for Parameter<B> {
    fn clone(&self) -> Self {
        let (backend, cell) = (self.backend.clone(), self.cell.clone());
        Self { name: self.name.clone(), id: self.id, shape: self.shape, backend, cell }
    }
}

impl<B: Backend> Parameter<B> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rows and columns.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its value now: something to differentiate by inside [`gradients`](crate::gradients) that
    /// want it, a constant elsewhere.
    pub fn value(&self) -> Result<Var<B>> {
        Ok(Var::wrap(&self.backend, self.backend.load(&self.cell)?))
    }

    /// Its values on the host, of a backend with one replica. Waits for the device.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        only(self.backend.read(&[&self.backend.load(&self.cell)?])?)
    }

    /// Overwrites it, alike in every replica.
    pub fn set(&self, values: &[f32]) -> Result<()> {
        check_length("set", self.shape, values.len())?;
        let replicas = 0..self.backend.seeds().len();
        replicas.into_iter().try_for_each(|r| self.backend.write(r, &[(&self.cell, values)]))
    }

    /// Where the backend keeps it.
    pub fn cell(&self) -> &B::Cell {
        &self.cell
    }

    /// Tells parameters apart whatever their names.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    fn new(backend: &B, name: &str, shape: Shape, values: Vec<Vec<f32>>) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let cell = backend.cell(shape, values)?;
        Ok(Self { name: name.into(), id, shape, backend: backend.clone(), cell })
    }
}

/// A set of named parameters on one backend: what one optimiser moves, or what one target network
/// copies.
///
/// Modules add theirs when they are made. Names are paths such as `encoder/linear_0/w`.
///
/// ```
/// use cm_nn::{DfdxBackend, Initialiser, Parameters};
///
/// let mut parameters = Parameters::new(&DfdxBackend::new(7));
/// let weight = parameters.create("w", [2, 3], Initialiser::LECUN_UNIFORM)?;
/// assert_eq!(weight.value()?.shape(), [2, 3]);
/// assert!(parameters.create("w", [1, 1], Initialiser::ZEROS).is_err());
/// # Ok::<(), cm_nn::Error>(())
/// ```
///
/// A clone shares the parameters; what is created in one afterwards is not in the other.
#[derive(Clone)]
pub struct Parameters<B: Backend> {
    backend: B,
    list: Vec<Parameter<B>>,
}

impl<B: Backend> Parameters<B> {
    /// An empty set. Initial values are drawn under the backend's seed, or seeds.
    pub fn new(backend: &B) -> Self {
        Self { backend: backend.clone(), list: Vec::new() }
    }

    /// Adds a parameter.
    pub fn create(
        &mut self,
        name: &str,
        shape: Shape,
        initialiser: Initialiser,
    ) -> Result<Parameter<B>> {
        check_length("create", shape, shape[0].saturating_mul(shape[1]))?;
        if self.get(name).is_some() {
            return Err(Error::DuplicateParameter(name.to_string()));
        }
        let seeds = self.backend.seeds().iter();
        let values = seeds.map(|&seed| initialiser.values(seed, name, shape));
        let values = values.collect::<Result<_>>()?;
        let parameter = Parameter::new(&self.backend, name, shape, values)?;
        self.list.push(parameter.clone());
        Ok(parameter)
    }

    /// The parameters in the order they were made.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter<B>> {
        self.list.iter()
    }

    /// The parameter of that name.
    pub fn get(&self, name: &str) -> Option<&Parameter<B>> {
        self.list.iter().find(|parameter| parameter.name() == name)
    }

    /// How many numbers the parameters hold together.
    pub fn count(&self) -> usize {
        self.list.iter().map(|parameter| parameter.shape[0] * parameter.shape[1]).sum()
    }

    /// The backend they live on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The backend's cells, in order.
    pub(crate) fn cells(&self) -> Vec<B::Cell> {
        self.list.iter().map(|parameter| parameter.cell.clone()).collect()
    }

    /// Every value of one replica on the host. Waits for the device once.
    pub fn snapshot(&self, replica: usize) -> Result<Snapshot> {
        ParameterSets::new(&self.backend).with("", self).snapshot(replica)
    }

    /// Overwrites every parameter of a replica by the matrix of its name. The snapshot must hold
    /// exactly these names and shapes and only finite values; otherwise nothing is changed.
    pub fn restore(&self, replica: usize, snapshot: &Snapshot) -> Result<()> {
        ParameterSets::new(&self.backend).with("", self).restore(replica, snapshot)
    }
}

impl<'a, B: Backend> IntoIterator for &'a Parameters<B> {
    type Item = &'a Parameter<B>;
    type IntoIter = std::slice::Iter<'a, Parameter<B>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
