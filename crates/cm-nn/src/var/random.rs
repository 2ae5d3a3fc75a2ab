//! Draws, counted by the backend's step and a stream number.
//!
//! Two draws of one step with the same stream number are the same numbers: give each use its own,
//! from `0x100` to `0x1fe`, the range cm-random's documentation sets aside for losses and policies
//! (`0x1ff` is this crate's, for initial weights).

use super::check_length;
use crate::{Backend, Distribution, Result, Shape, Var};

impl<B: Backend> Var<B> {
    /// Independent uniform numbers in `[0, 1)`: 0 is among them and 1 is not, so take the logarithm
    /// of one minus them.
    pub fn uniform(backend: &B, shape: Shape, stream: u32) -> Result<Self> {
        Self::draw("uniform", backend, shape, Distribution::Uniform, stream)
    }

    /// Independent standard normal numbers.
    ///
    /// ```
    /// use cm_nn::{Backend, DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let first = Var::normal(&backend, [4, 3], 0x100)?.to_vec()?;
    /// assert_eq!(Var::normal(&backend, [4, 3], 0x100)?.to_vec()?, first);
    /// backend.advance()?;
    /// assert_ne!(Var::normal(&backend, [4, 3], 0x100)?.to_vec()?, first);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn normal(backend: &B, shape: Shape, stream: u32) -> Result<Self> {
        Self::draw("normal", backend, shape, Distribution::Normal, stream)
    }

    /// For each row, a column index drawn with probability softmax(row); `[n, 1]`.
    pub fn categorical(&self, stream: u32) -> Result<Self> {
        Ok(self.with(self.backend.categorical(&self.tensor, stream)?))
    }

    /// A uniformly random order of `0..n`; `[n, 1]`.
    pub fn permutation(backend: &B, n: usize, stream: u32) -> Result<Self> {
        check_length("permutation", [n, 1], n)?;
        Ok(Self::wrap(backend, backend.permutation(n, stream)?))
    }

    fn draw(
        operation: &'static str,
        backend: &B,
        shape: Shape,
        distribution: Distribution,
        stream: u32,
    ) -> Result<Self> {
        check_length(operation, shape, shape[0].saturating_mul(shape[1]))?;
        Ok(Self::wrap(backend, backend.draw(shape, distribution, stream)?))
    }
}
