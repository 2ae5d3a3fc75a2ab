//! Element by element, and reductions.

use crate::check::require;
use crate::{Activation, Backend, Error, Map, Over, Reduce, Result, Var, Zip};

impl<B: Backend> Var<B> {
    /// `scale * self + shift`.
    pub fn affine(&self, scale: f32, shift: f32) -> Result<Self> {
        Ok(self.with(self.backend.affine(&self.tensor, scale, shift)?))
    }

    /// `scale * self`.
    pub fn scale(&self, scale: f32) -> Result<Self> {
        self.affine(scale, 0.0)
    }

    /// `-self`.
    pub fn neg(&self) -> Result<Self> {
        self.affine(-1.0, 0.0)
    }

    /// `f` of every element; see [`Map`].
    pub fn map(&self, f: Map) -> Result<Self> {
        Ok(self.with(self.backend.map(&self.tensor, f)?))
    }

    /// An activation of every element.
    pub fn activate(&self, activation: Activation) -> Result<Self> {
        self.map(Map::Activation(activation))
    }

    /// The positive part.
    pub fn relu(&self) -> Result<Self> {
        self.activate(Activation::Relu)
    }

    /// The hyperbolic tangent.
    pub fn tanh(&self) -> Result<Self> {
        self.activate(Activation::Tanh)
    }

    /// `1 / (1 + exp(-x))`.
    pub fn sigmoid(&self) -> Result<Self> {
        self.map(Map::Sigmoid)
    }

    /// `ln(1 + exp(x))`.
    pub fn softplus(&self) -> Result<Self> {
        self.map(Map::Softplus)
    }

    /// `exp(x)`.
    pub fn exp(&self) -> Result<Self> {
        self.map(Map::Exp)
    }

    /// `ln(x)`.
    pub fn log(&self) -> Result<Self> {
        self.map(Map::Log)
    }

    /// `x^2`.
    pub fn square(&self) -> Result<Self> {
        self.map(Map::Square)
    }

    /// `sqrt(x)`, with gradient 0 at 0.
    pub fn sqrt(&self) -> Result<Self> {
        self.map(Map::Sqrt)
    }

    /// `|x|`.
    pub fn abs(&self) -> Result<Self> {
        self.map(Map::Abs)
    }

    /// 1 where positive, else 0; no gradient.
    ///
    /// A choice between two values without a branch is `m a + (1 - m) b` with `m` such a mask.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// // The expectile loss |t - 1(u < 0)| u^2 at t = 0.9, as IQL uses it.
    /// let u = Var::new(&DfdxBackend::new(0), [1, 2], vec![1.0, -1.0])?;
    /// let weight = u.is_positive()?.affine(0.8, 0.1)?;
    /// let loss = weight.mul(&u.square()?)?;
    /// assert!(loss.to_vec()?.iter().zip([0.9, 0.1]).all(|(found, x)| (found - x).abs() < 1e-6));
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn is_positive(&self) -> Result<Self> {
        self.map(Map::Step)
    }

    /// Moved into `[low, high]`; an error if `low > high` or either is NaN.
    pub fn clamp(&self, low: f32, high: f32) -> Result<Self> {
        let found = format_args!("[{low}, {high}]");
        require(low <= high, "clamp", "a lower bound not above the upper", found)?;
        self.map(Map::Clamp { low, high })
    }

    /// Huber's loss of every element: `x^2 / 2` while `|x| <= delta`, `delta (|x| - delta / 2)`
    /// beyond.
    pub fn huber(&self, delta: f32) -> Result<Self> {
        let inner = self.clamp(-delta, delta)?;
        self.sub(&inner.scale(0.5)?)?.mul(&inner)
    }

    /// `self + other`, repeating a single row or column of either.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.zip("add", other, Zip::Add)
    }

    /// `self - other`, repeating a single row or column of either.
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.zip("sub", other, Zip::Sub)
    }

    /// `self * other`, element by element, repeating a single row or column of either.
    pub fn mul(&self, other: &Self) -> Result<Self> {
        self.zip("mul", other, Zip::Mul)
    }

    /// `self / other`, element by element, repeating a single row or column of either.
    pub fn div(&self, other: &Self) -> Result<Self> {
        self.zip("div", other, Zip::Div)
    }

    /// The larger of the two, element by element, repeating a single row or column of either.
    pub fn maximum(&self, other: &Self) -> Result<Self> {
        self.zip("maximum", other, Zip::Max)
    }

    /// The smaller of the two, element by element, repeating a single row or column of either.
    pub fn minimum(&self, other: &Self) -> Result<Self> {
        self.zip("minimum", other, Zip::Min)
    }

    /// The sum over rows (`[1, c]`), columns (`[n, 1]`) or all.
    pub fn sum(&self, over: Over) -> Result<Self> {
        self.reduce(over, Reduce::Sum)
    }

    /// The mean over rows (`[1, c]`), columns (`[n, 1]`) or all.
    pub fn mean(&self, over: Over) -> Result<Self> {
        self.reduce(over, Reduce::Mean)
    }

    /// The largest over rows (`[1, c]`), columns (`[n, 1]`) or all.
    pub fn max(&self, over: Over) -> Result<Self> {
        self.reduce(over, Reduce::Max)
    }

    /// `ln sum exp` over rows (`[1, c]`), columns (`[n, 1]`) or all.
    pub fn log_sum_exp(&self, over: Over) -> Result<Self> {
        self.reduce(over, Reduce::LogSumExp)
    }

    /// Each row divided by its length plus `epsilon`.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let x = Var::new(&DfdxBackend::new(0), [2, 2], vec![3.0, 4.0, 0.0, 0.0])?;
    /// assert_eq!(x.l2_normalize(1e-8)?.to_vec()?, [0.6, 0.8, 0.0, 0.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn l2_normalize(&self, epsilon: f32) -> Result<Self> {
        Ok(self.with(self.backend.l2_normalize(&self.tensor, epsilon)?))
    }

    fn reduce(&self, over: Over, f: Reduce) -> Result<Self> {
        Ok(self.with(self.backend.reduce(&self.tensor, over, f)?))
    }

    fn zip(&self, operation: &'static str, other: &Self, f: Zip) -> Result<Self> {
        let [a, b] = [self.shape(), other.shape()];
        if (0..2).any(|axis| a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) {
            return Err(Error::shape(operation, "equal sizes or 1 in each direction", &[a, b]));
        }
        Ok(self.with(self.backend.zip(&self.tensor, &other.tensor, f)?))
    }
}
