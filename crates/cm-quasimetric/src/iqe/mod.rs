//! Interval quasimetric embeddings.
//!
//! A group of features is a set of intervals `[x_i, max(x_i, y_i)]`; its distance is the length of
//! their union, and the groups' lengths are reduced to one number.
//!
//! The order of the left ends depends on `x` alone. One sort per row of `x` therefore serves every
//! pair, after which a pair is one sweep from left to right (`sweep`), as many
//! pairs at a time as a register holds.

use crate::{Float, Reduction};

mod backward;
mod forward;
mod order;
mod rowwise;
mod sweep;

pub(crate) use backward::pairwise_backward;
pub(crate) use forward::pairwise;
pub(crate) use rowwise::{rowwise, rowwise_backward};

/// What an element of a sweep takes, and sorting one, in elements of a metric residual distance.
const SWEEP: usize = 3;
const SORT: usize = 32;

/// How the features are divided and the groups reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) count: usize,
    /// Features, that is intervals, of one group.
    pub(crate) size: usize,
    pub(crate) reduction: Reduction,
}

impl Groups {
    /// The distance from the total and the maximum of the groups' lengths.
    #[inline(always)]
    fn reduce<E: Float>(&self, total: E, maximum: E) -> E {
        let (total_weight, maximum_weight) = self.weights();
        // A weight of 0 must not meet a length that overflowed: 0 * inf is NaN.
        match self.reduction {
            Reduction::Sum | Reduction::Mean => E::from_f64(total_weight) * total,
            Reduction::Max => maximum,
            Reduction::MaxMean { .. } => {
                E::from_f64(total_weight) * total + E::from_f64(maximum_weight) * maximum
            }
        }
    }

    /// What the total and the maximum of the groups' lengths weigh in the distance.
    fn weights(&self) -> (f64, f64) {
        let count = self.count as f64;
        match self.reduction {
            Reduction::Sum => (1.0, 0.0),
            Reduction::Mean => (1.0 / count, 0.0),
            Reduction::Max => (0.0, 1.0),
            Reduction::MaxMean { logit } => {
                let share = sigmoid(logit);
                ((1.0 - share) / count, share)
            }
        }
    }

    /// The derivative of the distance by the logit.
    fn logit_slope<E: Float>(&self, total: E, maximum: E) -> f64 {
        match self.reduction {
            Reduction::MaxMean { logit } => {
                // Lengths that overflowed count as the largest number, so that no inf - inf arises.
                let limit = E::MAX.to_f64();
                let mean = total.to_f64().min(limit) / self.count as f64;
                sigmoid(logit) * sigmoid(-logit) * (maximum.to_f64().min(limit) - mean)
            }
            _ => 0.0,
        }
    }
}

/// A sum of logit gradients as the element type, kept finite.
fn saturate<E: Float>(value: f64) -> E {
    let limit = E::MAX.to_f64();
    E::from_f64(value.clamp(-limit, limit))
}

fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}
