//! Layers whose weights no longer change.

use super::elementwise::{gelu, relu, silu};
use super::linear::add_row_to;
use super::math::tanh;
use super::product::one_row;
use crate::{Activation, Backend, Error, Result, Var};

/// `activation(x w + b)` with weights that no longer change, for one row at a time on the CPU.
///
/// It gives what [`Var::linear`] gives of one row on [`DfdxBackend`](crate::DfdxBackend), and up to
/// rounding of several, without what a matrix of a backend costs: for a row of a small network that
/// is most of the time. Any thread may use it.
///
/// ```
/// use cm_nn::{Activation, DfdxBackend, FixedLayer, Var};
///
/// let backend = DfdxBackend::new(0);
/// let weight = Var::new(&backend, [2, 2], vec![1.0, -1.0, 1.0, -1.0])?;
/// let bias = Var::new(&backend, [1, 2], vec![0.5, 0.5])?;
/// let layer = FixedLayer::new(&weight, &bias, Activation::Relu)?;
/// let mut y = [0.0; 2];
/// layer.forward(&[1.0, 2.0], &mut y)?;
/// assert_eq!(y, [3.5, 0.0]);
/// // What is missing of the input is taken for zeros.
/// layer.forward(&[1.0], &mut y)?;
/// assert_eq!(y, [1.5, 0.0]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedLayer {
    weight: Vec<f32>,
    bias: Vec<f32>,
    activation: Activation,
}

impl FixedLayer {
    /// Of a weight `[inputs, outputs]` and a bias `[1, outputs]` as they are now.
    pub fn new<B: Backend>(weight: &Var<B>, bias: &Var<B>, activation: Activation) -> Result<Self> {
        if bias.shape() != [1, weight.columns()] {
            let shapes = [weight.shape(), bias.shape()];
            return Err(Error::shape("fixed layer", "a bias for each column", &shapes));
        }
        Ok(Self { weight: weight.to_vec()?, bias: bias.to_vec()?, activation })
    }

    /// How many numbers a row of results has.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Writes what the layer makes of one row to `y`, which is as long as
    /// [`outputs`](Self::outputs) says; numbers missing at the end of `x` count as zeros.
    pub fn forward(&self, x: &[f32], y: &mut [f32]) -> Result<()> {
        if y.len() != self.outputs() || x.len() * y.len() > self.weight.len() {
            let shapes = [[1, x.len()], [1, y.len()]];
            return Err(Error::shape(
                "fixed layer",
                "rows that its weights take and make",
                &shapes,
            ));
        }
        one_row(x, &self.weight, y);
        match self.activation {
            Activation::Identity => add_row_to(y, &self.bias, |x| x),
            Activation::Relu => add_row_to(y, &self.bias, relu),
            Activation::Tanh => add_row_to(y, &self.bias, tanh),
            Activation::Silu => add_row_to(y, &self.bias, silu),
            Activation::Gelu => add_row_to(y, &self.bias, gelu),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DfdxBackend;

    #[test]
    fn layers_are_those_of_the_backend() {
        let backend = DfdxBackend::new(0);
        let numbers =
            |count: usize| (0..count).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>();
        let activations = [
            Activation::Identity,
            Activation::Relu,
            Activation::Tanh,
            Activation::Silu,
            Activation::Gelu,
        ];
        for ((inputs, outputs), activation) in
            [(1, 1), (3, 2), (80, 64), (64, 256), (7, 203)].into_iter().zip(activations)
        {
            let weight = Var::new(&backend, [inputs, outputs], numbers(inputs * outputs)).unwrap();
            let bias = Var::new(&backend, [1, outputs], numbers(outputs)).unwrap();
            let layer = FixedLayer::new(&weight, &bias, activation).unwrap();
            // With zeros at the end, and without them.
            let mut x = numbers(inputs);
            let some = inputs / 2 + 1;
            x[some..].fill(0.0);
            let row = Var::new(&backend, [1, inputs], x.clone()).unwrap();
            let wanted = row.linear(&weight, Some(&bias), activation).unwrap().to_vec().unwrap();
            let mut y = vec![f32::NAN; layer.outputs()];
            for x in [&x[..], &x[..some]] {
                layer.forward(x, &mut y).unwrap();
                assert_eq!(y, wanted, "{inputs} x {outputs}");
            }
            assert!(layer.forward(&vec![0.0; inputs + 1], &mut y).is_err());
            assert!(layer.forward(&x, &mut vec![0.0; outputs + 1]).is_err());
        }
        let weight = Var::new(&backend, [1, 2], vec![1.0; 2]).unwrap();
        assert!(FixedLayer::new(&weight, &weight.transpose().unwrap(), activations[0]).is_err());
    }
}
