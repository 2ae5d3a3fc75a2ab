//! Initial weights.

use cm_random::{Philox, normal_pair, unit_f32};
use serde::{Deserialize, Serialize};

use crate::check::{Within, positive};
use crate::{Result, Shape};

/// The stream of initial weights; its steps are the hashes of parameter names.
const STREAM: u32 = 0x1ff;
/// Standard deviation of a standard normal cut at two standard deviations.
const TRUNCATED_DEVIATION: f32 = 0.879_625_6;

/// How a weight `[fan_in, fan_out]` starts.
///
/// The numbers depend on the seed, the parameter's name and its shape, and on nothing else: not on
/// the backend, nor on which other parameters there are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Initialiser {
    /// One value everywhere.
    Constant(f32),
    /// Mean 0 and variance `scale / fan`.
    VarianceScaling {
        /// Numerator of the variance; positive.
        scale: f32,
        /// Denominator of the variance.
        fan: Fan,
        /// Shape of the distribution.
        shape: Spread,
    },
}

/// What a variance is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fan {
    /// The number of inputs.
    In,
    /// The number of outputs.
    Out,
    /// The mean of both.
    Average,
}

/// Shape of an initial distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Uniform on a symmetric interval.
    Uniform,
    /// Normal.
    Normal,
    /// Normal cut at two standard deviations and rescaled to the wanted variance.
    TruncatedNormal,
}

impl Initialiser {
    /// Zero everywhere.
    pub const ZEROS: Self = Self::Constant(0.0);
    /// Uniform with variance `1 / fan_in`, what the authors' code uses for every network.
    pub const LECUN_UNIFORM: Self =
        Self::VarianceScaling { scale: 1.0, fan: Fan::In, shape: Spread::Uniform };
    /// Uniform with variance one over the mean of inputs and outputs, what OGBench uses for every
    /// network.
    ///
    /// ```
    /// use cm_nn::Initialiser;
    ///
    /// let weights = Initialiser::GLOROT_UNIFORM.values(0, "w", [32, 64])?;
    /// assert!(weights.iter().all(|weight| weight.abs() <= (3.0_f32 / 48.0).sqrt()));
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub const GLOROT_UNIFORM: Self = Self::glorot_uniform(1.0);
    /// Truncated normal with variance `1 / fan_in`.
    pub const LECUN_NORMAL: Self =
        Self::VarianceScaling { scale: 1.0, fan: Fan::In, shape: Spread::TruncatedNormal };
    /// A normal of variance `1 / fan_in` cut at two standard deviations, which leaves 0.774 of its
    /// variance: what the authors' 2-D script uses.
    ///
    /// ```
    /// use cm_nn::Initialiser;
    ///
    /// let weights = Initialiser::CUT_NORMAL.values(0, "w", [64, 64])?;
    /// assert!(weights.iter().all(|weight| weight.abs() <= 2.001 / 64_f32.sqrt()));
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub const CUT_NORMAL: Self =
        Self::VarianceScaling { scale: 0.774, fan: Fan::In, shape: Spread::TruncatedNormal };

    /// Uniform with variance `scale` over the mean of inputs and outputs.
    pub const fn glorot_uniform(scale: f32) -> Self {
        Self::VarianceScaling { scale, fan: Fan::Average, shape: Spread::Uniform }
    }

    /// Refuses a variance that is not positive and finite.
    pub fn check(&self) -> Result<()> {
        match *self {
            Self::Constant(_) => Ok(()),
            Self::VarianceScaling { scale, .. } => {
                positive("scale", scale).within("variance-scaling")
            }
        }
    }

    /// The values of the parameter `name` under `seed`.
    pub fn values(&self, seed: u64, name: &str, shape: Shape) -> Result<Vec<f32>> {
        self.check()?;
        let count = shape[0] * shape[1];
        match *self {
            Self::Constant(value) => Ok(vec![value; count]),
            Self::VarianceScaling { scale, fan, shape: spread } => {
                let fan = match fan {
                    Fan::In => shape[0] as f32,
                    Fan::Out => shape[1] as f32,
                    Fan::Average => (shape[0] + shape[1]) as f32 / 2.0,
                };
                Ok(spread.draw(count, (scale / fan).sqrt(), seed, name))
            }
        }
    }
}

impl Spread {
    fn draw(self, count: usize, deviation: f32, seed: u64, name: &str) -> Vec<f32> {
        let (philox, step) = (Philox::new(seed), hash(name));
        let blocks = (0..=u32::MAX).map(|index| philox.block(step, STREAM, index));
        let normals = blocks.clone().flat_map(|[a, b, c, d]| {
            let ((x, y), (z, w)) = (normal_pair(a, b), normal_pair(c, d));
            [x, y, z, w]
        });
        match self {
            Self::Uniform => {
                let limit = 3.0_f32.sqrt() * deviation;
                let units = blocks.flatten().map(unit_f32);
                units.map(|unit| limit * (2.0 * unit - 1.0)).take(count).collect()
            }
            Self::Normal => normals.map(|z| z * deviation).take(count).collect(),
            Self::TruncatedNormal => normals
                .filter(|z| z.abs() < 2.0)
                .map(|z| z * (deviation / TRUNCATED_DEVIATION))
                .take(count)
                .collect(),
        }
    }
}

/// FNV-1a.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    const SHAPE: Shape = [300, 400];

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        (mean, values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n)
    }

    #[test]
    fn has_the_stated_mean_variance_and_range() {
        for spread in [Spread::Uniform, Spread::Normal, Spread::TruncatedNormal] {
            for (fan, size) in [(Fan::In, 300.0), (Fan::Out, 400.0), (Fan::Average, 350.0)] {
                let init = Initialiser::VarianceScaling { scale: 2.0, fan, shape: spread };
                let values = init.values(1, "w", SHAPE).unwrap();
                let (mean, variance) = moments(&values);
                let wanted = 2.0 / size;
                // Four standard errors of each over 120,000 draws.
                assert!(mean.abs() < 4.0 * (wanted / 120_000.0_f64).sqrt(), "{spread:?} {mean}");
                let ratio = variance / wanted;
                assert!(
                    (ratio - 1.0).abs() < 4.0 * (2.0_f64 / 120_000.0).sqrt(),
                    "{spread:?} {ratio}"
                );
                let largest = values.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
                let bound = match spread {
                    Spread::Uniform => 3.0_f64.sqrt(),
                    Spread::Normal => 5.78,
                    Spread::TruncatedNormal => 2.0 / 0.879_625_6,
                };
                assert!(f64::from(largest) <= bound * wanted.sqrt() * (1.0 + 1e-6));
            }
        }
    }

    #[test]
    fn depends_on_seed_and_name_only() {
        let values = |seed, name| Initialiser::LECUN_UNIFORM.values(seed, name, [3, 5]).unwrap();
        assert_eq!(values(1, "a/w"), values(1, "a/w"));
        assert_ne!(values(1, "a/w"), values(2, "a/w"));
        assert_ne!(values(1, "a/w"), values(1, "b/w"));
    }

    #[test]
    fn refuses_a_scale_that_is_not_positive() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let shape = Spread::Uniform;
            let init = Initialiser::VarianceScaling { scale, fan: Fan::In, shape };
            assert!(matches!(init.values(0, "w", [2, 2]), Err(Error::Setting { .. })));
        }
    }
}
