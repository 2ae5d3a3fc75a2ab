//! Activation functions.

/// What follows a linear layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing.
    Identity,
    /// `max(x, 0)`; derivative 0 at 0.
    #[default]
    Relu,
    /// `x sigmoid(x)`, also called swish.
    Silu,
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`, the usual approximation of
    /// `x P(N(0, 1) < x)`.
    Gelu,
    /// The hyperbolic tangent.
    Tanh,
}
