//! The metric residual family: `mean_c [ |x_s - y_s| + max_i relu(x_a,i - y_a,i) ]`.
//!
//! Each component `c` owns a run of features, first its symmetric part `s` (Euclidean distance),
//! then its asymmetric part `a` (largest positive difference). MRN splits every component in
//! halves; Max is one component without a symmetric part.

use std::ops::Range;

mod backward;
mod forward;
mod norm;
mod record;
mod rowwise;
mod tiles;
mod weighted;

pub(crate) use backward::pairwise_backward;
pub(crate) use forward::{pairwise, pairwise_recorded};
pub(crate) use record::Component;
pub(crate) use rowwise::{one, rowwise, rowwise_backward};

/// Rows that one task takes: few enough to share work among cores, many enough that a panel in the
/// cache is used often.
const BLOCK: usize = 32;

/// How the features are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) components: usize,
    /// Features of the Euclidean part of one component.
    pub(crate) symmetric: usize,
    /// Features of the asymmetric part of one component.
    pub(crate) asymmetric: usize,
    /// Added to each squared difference under the root; 0 keeps d(x, x) = 0.
    pub(crate) epsilon: f64,
}

impl Split {
    fn symmetric_features(&self, component: usize) -> Range<usize> {
        let first = component * (self.symmetric + self.asymmetric);
        first..first + self.symmetric
    }

    fn asymmetric_features(&self, component: usize) -> Range<usize> {
        let first = component * (self.symmetric + self.asymmetric) + self.symmetric;
        first..first + self.asymmetric
    }

    /// What each squared norm is raised by.
    fn offset(&self) -> f64 {
        self.epsilon * self.symmetric as f64
    }

    fn share(&self) -> f64 {
        1.0 / self.components as f64
    }
}
