//! What networks are made of.

use crate::{Activation, Backend, Error, Result, Var};

impl<B: Backend> Var<B> {
    /// `activation(self weight + bias)`: `[n, i]`, `[i, o]`, `[1, o]` to `[n, o]`, in one
    /// operation.
    ///
    /// ```
    /// use cm_nn::{Activation, DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let x = Var::new(&backend, [1, 2], vec![1.0, 2.0])?;
    /// let weight = Var::new(&backend, [2, 2], vec![1.0, -1.0, 1.0, -1.0])?;
    /// let bias = Var::new(&backend, [1, 2], vec![0.5, 0.5])?;
    /// let y = x.linear(&weight, Some(&bias), Activation::Relu)?;
    /// assert_eq!(y.to_vec()?, [3.5, 0.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn linear(
        &self,
        weight: &Self,
        bias: Option<&Self>,
        activation: Activation,
    ) -> Result<Self> {
        let [x, w] = [self.shape(), weight.shape()];
        if x[1] != w[0] {
            return Err(Error::shape(
                "linear",
                "as many columns in the input as rows in the weight",
                &[x, w],
            ));
        }
        if let Some(bias) = bias
            && bias.shape() != [1, w[1]]
        {
            return Err(Error::shape("linear", format!("a bias [1, {}]", w[1]), &[bias.shape()]));
        }
        let bias = bias.map(|bias| &bias.tensor);
        Ok(self.with(self.backend.linear(&self.tensor, &weight.tensor, bias, activation)?))
    }

    /// The matrix product `self other`.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        let [a, b] = [self.shape(), other.shape()];
        if a[1] != b[0] {
            let expected = "as many columns on the left as rows on the right";
            return Err(Error::shape("matmul", expected, &[a, b]));
        }
        self.linear(other, None, Activation::Identity)
    }

    /// Each row shifted and scaled to mean 0 and variance 1, then multiplied by `gain [1, c]` and
    /// moved by `bias [1, c]`.
    pub fn layer_norm(&self, gain: &Self, bias: &Self, epsilon: f32) -> Result<Self> {
        let row = [1, self.columns()];
        if gain.shape() != row || bias.shape() != row {
            let expected = format!("gain and bias {row:?}");
            return Err(Error::shape("layer_norm", expected, &[gain.shape(), bias.shape()]));
        }
        let (gain, bias) = (&gain.tensor, &bias.tensor);
        Ok(self.with(self.backend.layer_norm(&self.tensor, gain, bias, epsilon)?))
    }
}
