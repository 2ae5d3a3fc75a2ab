//! Networks whose weights no longer change.

use cm_quasimetric::Head;

use crate::{FixedLayer, Result};

/// An [`Mlp`](super::Mlp) whose weights no longer change, for one row at a time on the CPU. Any
/// thread may use it.
///
/// ```
/// use cm_nn::{DfdxBackend, Mlp, MlpSettings, Parameters, Var};
///
/// let backend = DfdxBackend::new(0);
/// let settings = MlpSettings { hidden: vec![8], ..Default::default() };
/// let network = Mlp::new(&mut Parameters::new(&backend), "network", 2, &settings, 3)?;
/// let fixed = network.fixed()?.unwrap();
///
/// let mut y = Vec::new();
/// fixed.forward(&[1.0, -1.0], &mut y)?;
/// assert_eq!(y, network.forward(&Var::new(&backend, [1, 2], vec![1.0, -1.0])?)?.to_vec()?);
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FixedMlp {
    layers: Vec<FixedLayer>,
}

impl FixedMlp {
    /// Of layers of which each takes what the one before makes; without any, rows stay as they are.
    pub fn new(layers: Vec<FixedLayer>) -> Self {
        Self { layers }
    }

    /// This network, then another.
    pub fn then(mut self, next: Self) -> Self {
        self.layers.extend(next.layers);
        self
    }

    fn outputs(&self) -> usize {
        self.layers.last().map_or(0, FixedLayer::outputs)
    }

    /// Appends what the network makes of one row, of which zeros at the end may be left out.
    pub fn forward(&self, x: &[f32], y: &mut Vec<f32>) -> Result<()> {
        let Some((last, hidden)) = self.layers.split_last() else {
            y.extend_from_slice(x);
            return Ok(());
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut row = x;
        for layer in hidden {
            after.resize(layer.outputs(), 0.0);
            layer.forward(row, &mut after)?;
            std::mem::swap(&mut before, &mut after);
            row = &before;
        }
        let known = y.len();
        y.resize(known + last.outputs(), 0.0);
        last.forward(row, &mut y[known..])
    }
}

/// A [`Quasimetric`](super::Quasimetric) whose weights no longer change, for a few rows at a time
/// on the CPU. Any thread may use it.
///
/// ```
/// use cm_nn::{DfdxBackend, Parameters, Quasimetric, QuasimetricSettings, Var};
///
/// let backend = DfdxBackend::new(0);
/// let mut parameters = Parameters::new(&backend);
/// let settings = QuasimetricSettings { features: 16, ..Default::default() };
/// let d = Quasimetric::new(&mut parameters, "d", 2, &settings)?;
/// let fixed = d.fixed()?.unwrap();
///
/// let x = d.features(&Var::new(&backend, [2, 2], vec![1.0, -1.0, 2.0, 0.5])?)?;
/// let mut rows = Vec::new();
/// fixed.features(&[1.0, -1.0], &mut rows)?;
/// fixed.features(&[2.0, 0.5], &mut rows)?;
/// let same = |a: f32, b: f32| (a - b).abs() < 1e-5;
/// assert!(rows.iter().zip(x.to_vec()?).all(|(&a, b)| same(a, b)));
/// assert!(same(fixed.distance(&rows[..16], &rows[16..])?, d.pairs(&x, &x)?.to_vec()?[1]));
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedQuasimetric {
    pub(super) networks: Vec<FixedMlp>,
    pub(super) head: Head,
}

impl FixedQuasimetric {
    /// How many features distances compare.
    pub fn columns(&self) -> usize {
        self.networks.iter().map(FixedMlp::outputs).sum()
    }

    /// Appends the features of one row, of which zeros at the end may be left out.
    pub fn features(&self, x: &[f32], features: &mut Vec<f32>) -> Result<()> {
        self.networks.iter().try_for_each(|network| network.forward(x, features))
    }

    /// The distance from one row of features to another.
    pub fn distance(&self, from: &[f32], to: &[f32]) -> Result<f32> {
        Ok(self.head.distance(from, to)?)
    }
}
