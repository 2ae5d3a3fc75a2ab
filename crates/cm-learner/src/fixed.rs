//! A distance between states whose weights no longer change.

use cm_nn::{FixedMlp, FixedQuasimetric};

use crate::{Error, Result};

/// A [`StateDistance`](crate::StateDistance) whose weights no longer change: the same points and
/// distances up to rounding, for a few states at a time on the CPU. Any thread may use it. Methods
/// make theirs in [`StateDistance::fixed`](crate::StateDistance::fixed).
///
/// ```
/// use cm_learner::FixedDistance;
/// use cm_nn::{DfdxBackend, FixedMlp, Parameters, Quasimetric, QuasimetricSettings};
///
/// let mut parameters = Parameters::new(&DfdxBackend::new(0));
/// let settings = QuasimetricSettings { features: 16, ..Default::default() };
/// // Of a state's two numbers and an action's one.
/// let quasimetric = Quasimetric::new(&mut parameters, "d", 3, &settings)?;
/// let members = vec![quasimetric.fixed()?.unwrap()];
/// let distance = FixedDistance::new(FixedMlp::default(), members, 1.0);
///
/// let (mut here, mut there) = (Vec::new(), Vec::new());
/// distance.point(&[0.0, 1.0], &mut here)?;
/// distance.point(&[3.0, 1.0], &mut there)?;
/// assert_eq!(distance.distance(&here, &here)?, 0.0);
/// assert!(distance.distance(&here, &there)? > 0.0);
/// # Ok::<(), cm_learner::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedDistance {
    first: FixedMlp,
    members: Vec<FixedQuasimetric>,
    scale: f32,
}

impl FixedDistance {
    /// The largest of the quasimetrics' distances times `scale`; they take what `first` makes of a
    /// state, and zeros behind it if they take more.
    pub fn new(first: FixedMlp, members: Vec<FixedQuasimetric>, scale: f32) -> Self {
        Self { first, members, scale }
    }

    /// How many numbers a point has.
    pub fn columns(&self) -> usize {
        self.members.iter().map(FixedQuasimetric::columns).sum()
    }

    /// Appends the point of one state.
    pub fn point(&self, state: &[f32], points: &mut Vec<f32>) -> Result<()> {
        let mut seen = Vec::new();
        self.first.forward(state, &mut seen)?;
        self.members.iter().try_for_each(|member| member.features(&seen, points))
    }

    /// From one point to another.
    pub fn distance(&self, from: &[f32], to: &[f32]) -> Result<f32> {
        if [from, to].iter().any(|point| point.len() != self.columns()) {
            return Err(Error::Shape {
                operation: "fixed distance",
                expected: format!("points of {} numbers", self.columns()),
                found: format!("{} and {}", from.len(), to.len()),
            });
        }
        let (mut first, mut largest) = (0, f32::NEG_INFINITY);
        for member in &self.members {
            let part = first..first + member.columns();
            first = part.end;
            let found = member.distance(&from[part.clone()], &to[part])?;
            // A NaN is not lost.
            largest = if largest >= found { largest } else { found };
        }
        Ok(largest * self.scale)
    }
}
