//! A distance between states whose weights no longer change.

use cm_nn::{FixedLayer, FixedQuasimetric};

use crate::Result;

/// A [`StateDistance`](crate::StateDistance) whose weights no longer change: the same points and
/// distances up to rounding, for a few states at a time on the CPU. Any thread may use it.
#[derive(Clone, Debug)]
pub struct FixedDistance {
    first: Vec<FixedLayer>,
    members: Vec<FixedQuasimetric>,
    scale: f32,
}

impl FixedDistance {
    /// The largest of the quasimetrics' distances times `scale`; they take what the `first` layers
    /// make of a state, and zeros behind it if they take more.
    pub fn new(first: Vec<FixedLayer>, members: Vec<FixedQuasimetric>, scale: f32) -> Self {
        Self { first, members, scale }
    }

    /// How many numbers a point has.
    pub fn columns(&self) -> usize {
        self.members.iter().map(FixedQuasimetric::columns).sum()
    }

    /// Appends the point of one state.
    ///
    /// # Panics
    /// If the state has more numbers than the metric takes.
    pub fn point(&self, state: &[f32], points: &mut Vec<f32>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut seen = state;
        for layer in &self.first {
            after.resize(layer.outputs(), 0.0);
            layer.forward(seen, &mut after);
            std::mem::swap(&mut before, &mut after);
            seen = &before;
        }
        self.members.iter().for_each(|member| member.features(seen, points));
    }

    /// From one point to another.
    pub fn distance(&self, from: &[f32], to: &[f32]) -> Result<f32> {
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
