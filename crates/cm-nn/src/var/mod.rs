//! [`Var`]: a matrix on a backend, with shape-checked operations.

mod arithmetic;
mod layers;
mod layout;
mod learning;
mod random;

use crate::{Backend, Error, Result, Shape, Values};

/// A matrix on backend `B`.
///
/// Every operation that combines shapes checks them and returns [`Error::Shape`] naming the
/// operation and what it found, so a loss is a chain of `?`; nothing here panics. Whether gradients
/// flow is decided by [`gradients`](crate::gradients), not by the type: outside of it every `Var`
/// is a constant.
///
/// The operations' values and gradients are stated once, on [`Backend`]. Indices count from 0.
///
/// ```
/// use cm_nn::{DfdxBackend, Over, Var};
///
/// let backend = DfdxBackend::new(0);
/// let x = Var::new(&backend, [2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
/// let norms = x.square()?.sum(Over::Columns)?.sqrt()?;
/// assert_eq!(norms.to_vec()?, [5.0_f32.sqrt(), 5.0]);
///
/// let wrong = Var::new(&backend, [3, 1], vec![0.0; 3])?;
/// assert_eq!(x.add(&wrong).unwrap_err().to_string(), "add: expected equal sizes or 1 in each direction, found [2, 2] and [3, 1]");
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Var<B: Backend> {
    backend: B,
    tensor: B::Tensor,
}

impl<B: Backend> Clone for Var<B> {
    fn clone(&self) -> Self {
        Self { backend: self.backend.clone(), tensor: self.tensor.clone() }
    }
}

impl<B: Backend> std::fmt::Debug for Var<B> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [rows, columns] = self.shape();
        write!(formatter, "Var[{rows}, {columns}]")
    }
}

impl<B: Backend> Var<B> {
    /// A constant from `rows * columns` values, row by row.
    pub fn new(backend: &B, shape: Shape, values: Vec<f32>) -> Result<Self> {
        check_length("new", shape, values.len())?;
        Ok(Self::wrap(backend, backend.tensor(shape, values)?))
    }

    /// A constant with one value everywhere.
    pub fn full(backend: &B, shape: Shape, value: f32) -> Result<Self> {
        check_length("full", shape, shape[0].saturating_mul(shape[1]))?;
        Ok(Self::wrap(backend, backend.full(shape, value)?))
    }

    /// A backend's tensor as a `Var`.
    pub fn wrap(backend: &B, tensor: B::Tensor) -> Self {
        Self { backend: backend.clone(), tensor }
    }

    /// The backend's tensor.
    pub fn tensor(&self) -> &B::Tensor {
        &self.tensor
    }

    /// The backend it lives on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Rows and columns.
    pub fn shape(&self) -> Shape {
        B::shape(&self.tensor)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape()[0]
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.shape()[1]
    }

    /// The values on the host, row by row, of a backend with one replica. Waits for the device.
    pub fn to_vec(&self) -> Result<Vec<f32>> {
        only(self.backend.read(&[&self.tensor])?)
    }

    /// The values of several matrices on the host, with one wait for all: one slice per replica.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let (x, y) = (Var::full(&backend, [1, 2], 3.0)?, Var::full(&backend, [1, 1], 4.0)?);
    /// let values = Var::read(&[&x, &y])?;
    /// assert_eq!((values[0].replica(0), values[1].replica(0)), (&[3.0, 3.0][..], &[4.0][..]));
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn read(vars: &[&Self]) -> Result<Vec<Values>> {
        let Some(first) = vars.first() else { return Ok(Vec::new()) };
        first.backend.read(&vars.iter().map(|var| &var.tensor).collect::<Vec<_>>())
    }

    /// The value of a `[1, 1]` matrix on the host, of a backend with one replica. Waits for the
    /// device.
    pub fn item(&self) -> Result<f32> {
        if self.shape() != [1, 1] {
            return Err(Error::shape("item", "[1, 1]", &[self.shape()]));
        }
        Ok(self.to_vec()?[0])
    }

    /// The same values as a constant: no gradient flows through.
    pub fn stop_gradient(&self) -> Self {
        self.with(self.backend.stop_gradient(&self.tensor))
    }

    /// Another tensor on this one's backend.
    fn with(&self, tensor: B::Tensor) -> Self {
        Self::wrap(&self.backend, tensor)
    }
}

/// What was read of one matrix that has one replica.
pub(crate) fn only(mut read: Vec<Values>) -> Result<Vec<f32>> {
    let values = read.pop().unwrap_or_else(|| Values::new(Vec::new(), 1));
    let found = values.replicas();
    values.only().ok_or(Error::Replicas {
        what: "a read that does not say which replica",
        expected: "a backend with one".to_owned(),
        found,
    })
}

/// Refuses empty shapes and lengths that are not `rows * columns`.
pub(crate) fn check_length(operation: &'static str, shape: Shape, found: usize) -> Result<()> {
    let expected = shape[0].checked_mul(shape[1]).unwrap_or(0);
    if expected == 0 {
        let expected = "at least one row and one column".to_string();
        return Err(Error::Shape { operation, expected, found: format!("{shape:?}") });
    }
    if expected != found {
        let expected = format!("{expected} values for {shape:?}");
        return Err(Error::Shape { operation, expected, found: found.to_string() });
    }
    Ok(())
}
