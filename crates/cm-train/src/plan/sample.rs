//! Rows of the data that a road map is made of.

use std::ops::Range;

use cm_random::{Philox, below_u64};
use cm_replay::Dataset;
use rand_core::Rng;

use crate::Model;

/// The stream of which rows are looked at.
const STREAM: u32 = 0x023;
/// Rows that are looked at within the steps that the policy is sent ahead.
const WITHIN: usize = 5;
/// Rows of a piece, where trajectories are taken in pieces.
const PIECE: usize = 4 * WITHIN;

/// Rows of some trajectories, every `stride`th.
pub(super) struct Sample {
    /// Own units.
    pub(super) states: Vec<f32>,
    /// As the model sees them: columns vary alike.
    pub(super) scaled: Vec<f32>,
    /// Where each trajectory ends.
    pub(super) ends: Vec<usize>,
    pub(super) stride: usize,
}

/// Trajectories that samples are drawn of.
pub(super) struct Source<'a> {
    model: &'a Model,
    data: &'a Dataset,
    trajectories: &'a [usize],
    seed: u64,
    stride: usize,
}

impl<'a> Source<'a> {
    /// For samples of at least `rows` rows, some of them within so many `steps`.
    pub(super) fn new(
        (model, seed): (&'a Model, u64),
        data: &'a Dataset,
        trajectories: &'a [usize],
        (rows, steps): (usize, usize),
    ) -> Self {
        let mut source = Self { model, data, trajectories, seed, stride: (steps / WITHIN).max(1) };
        // All rows are wanted if there are few.
        while source.stride > 1 && source.rows() < rows {
            source.stride -= 1;
        }
        source
    }

    /// How many rows there are to be drawn.
    pub(super) fn rows(&self) -> usize {
        let lengths = self.trajectories.iter().map(|&one| self.data.trajectory(one).len());
        lengths.sum::<usize>() / self.stride
    }

    /// At most so many rows, of whole trajectories or of short pieces of more of them.
    pub(super) fn draw(&self, most: usize, pieces: bool) -> Sample {
        let mut parts: Vec<Range<usize>> =
            self.trajectories.iter().map(|&one| self.data.trajectory(one)).collect();
        if pieces {
            let length = PIECE * self.stride;
            let piece = |part: Range<usize>| {
                let end = part.end;
                part.step_by(length).map(move |from| from..end.min(from + length))
            };
            parts = parts.into_iter().flat_map(piece).collect();
        }
        let mut random = Philox::new(self.seed).stream(0, STREAM);
        for last in (1..parts.len()).rev() {
            parts.swap(last, below_u64(random.next_u64(), last as u64 + 1) as usize);
        }
        let (mut states, mut scaled) = (Vec::new(), Vec::new());
        let (mut ends, mut count) = (Vec::new(), 0);
        for part in parts {
            if count >= most {
                break;
            }
            for row in part.step_by(self.stride).take(most - count) {
                states.extend(self.model.unscaled(self.data.observations().row(row)));
                scaled.extend_from_slice(self.data.observations().row(row));
                count += 1;
            }
            ends.push(count);
        }
        Sample { states, scaled, ends, stride: self.stride }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::model::barely_trained;

    #[test]
    fn pieces_are_of_more_trajectories_and_follow_them() {
        let (model, task) = barely_trained(Method::Cmd1);
        let trajectories: Vec<usize> = (0..task.data.trajectories()).collect();
        let source = Source::new((&model, 3), &task.data, &trajectories, (100, 10));
        assert_eq!((source.stride, source.rows()), (2, task.data.steps() / 2));
        // All rows are wanted.
        let source = Source::new((&model, 3), &task.data, &trajectories, (1 << 20, 10));
        assert_eq!((source.stride, source.rows()), (1, task.data.steps()));
        let (whole, pieces) = (source.draw(200, false), source.draw(200, true));
        for sample in [&whole, &pieces] {
            assert_eq!(sample.states.len(), 200 * 2);
            assert_eq!((sample.scaled.len(), sample.ends.last()), (200 * 2, Some(&200)));
            // Each row is the one behind the row before it.
            let places = |row: &[f32]| {
                let rows = 0..task.data.steps();
                rows.filter(|&at| task.data.observations().row(at) == row).collect::<Vec<_>>()
            };
            let mut start = 0;
            for &end in &sample.ends {
                for row in start + 1..end {
                    let at = |row: usize| places(&sample.scaled[row * 2..][..2]);
                    let follows = at(row - 1).iter().any(|before| at(row).contains(&(before + 1)));
                    assert!(follows, "{row}");
                }
                start = end;
            }
        }
        assert!(pieces.ends.len() > whole.ends.len());
        let longest = pieces.ends.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest <= Some(PIECE));
    }
}
