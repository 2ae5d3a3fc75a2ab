//! A quasimetric whose weights no longer change.

use cm_quasimetric::Head;

use crate::{FixedLayer, Result};

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
/// fixed.features(&[1.0, -1.0], &mut rows);
/// fixed.features(&[2.0, 0.5], &mut rows);
/// let same = |a: f32, b: f32| (a - b).abs() < 1e-5;
/// assert!(rows.iter().zip(x.to_vec()?).all(|(&a, b)| same(a, b)));
/// assert!(same(fixed.distance(&rows[..16], &rows[16..])?, d.pairs(&x, &x)?.to_vec()?[1]));
/// # Ok::<(), cm_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedQuasimetric {
    pub(super) networks: Vec<Vec<FixedLayer>>,
    pub(super) head: Head,
}

impl FixedQuasimetric {
    /// How many features distances compare.
    pub fn columns(&self) -> usize {
        let last = self.networks.iter().filter_map(|layers| layers.last());
        last.map(FixedLayer::outputs).sum()
    }

    /// Appends the features of one row, of which zeros at the end may be left out.
    ///
    /// # Panics
    /// If there are more numbers in the row than the networks take.
    pub fn features(&self, x: &[f32], features: &mut Vec<f32>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for layers in &self.networks {
            let Some((last, hidden)) = layers.split_last() else { continue };
            let mut row = x;
            for layer in hidden {
                after.resize(layer.outputs(), 0.0);
                layer.forward(row, &mut after);
                std::mem::swap(&mut before, &mut after);
                row = &before;
            }
            let known = features.len();
            features.resize(known + last.outputs(), 0.0);
            last.forward(row, &mut features[known..]);
        }
    }

    /// The distance from one row of features to another.
    pub fn distance(&self, from: &[f32], to: &[f32]) -> Result<f32> {
        Ok(self.head.distance(from, to)?)
    }
}
