//! Packed copies of a matrix in which [`LANES`] elements that are worked on together lie together.
//!
//! The last panel is padded with zeros; kernels compute the padding along and never store it.

use std::ops::Range;

use crate::simd::LANES;
use crate::{Float, Rows};

/// Rows side by side: panel `b` holds, for each feature, that feature of rows `b*LANES..`.
pub(crate) struct RowPanels<E> {
    data: Vec<E>,
    features: usize,
    rows: usize,
}

impl<E: Float> RowPanels<E> {
    pub(crate) fn pack(matrix: Rows<'_, E>) -> Self {
        let (rows, features) = matrix.shape();
        let mut data = vec![E::ZERO; rows.div_ceil(LANES) * features * LANES];
        for (block, panel) in data.chunks_exact_mut(features * LANES).enumerate() {
            for lane in 0..LANES.min(rows - block * LANES) {
                let row = matrix.row(block * LANES + lane);
                for (slot, &value) in panel[lane..].iter_mut().step_by(LANES).zip(row) {
                    *slot = value;
                }
            }
        }
        Self { data, features, rows }
    }

    /// Panels with the rows they hold: `(rows, [features][LANES])`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<usize>, &[[E; LANES]])> {
        self.data.chunks_exact(self.features * LANES).enumerate().map(|(block, panel)| {
            let first = block * LANES;
            (first..(first + LANES).min(self.rows), panel.as_chunks().0)
        })
    }
}

/// Features side by side: panel `b` holds, for each row, its features `b*LANES..`.
pub(crate) struct FeaturePanels<E> {
    data: Vec<E>,
    rows: usize,
    features: usize,
}

impl<E: Float> FeaturePanels<E> {
    /// Packs the features in `range`.
    pub(crate) fn pack(matrix: Rows<'_, E>, range: Range<usize>) -> Self {
        let (rows, features) = (matrix.rows(), range.len());
        let mut data = vec![E::ZERO; features.div_ceil(LANES) * rows * LANES];
        for (block, panel) in data.chunks_exact_mut(rows * LANES).enumerate() {
            let first = range.start + block * LANES;
            let last = (first + LANES).min(range.end);
            for (row, slot) in panel.chunks_exact_mut(LANES).enumerate() {
                slot[..last - first].copy_from_slice(&matrix.row(row)[first..last]);
            }
        }
        Self { data, rows, features }
    }

    /// Panels with the features they hold, counted from the start of the packed range:
    /// `(features, [rows][LANES])`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<usize>, &[[E; LANES]])> {
        self.data.chunks_exact(self.rows * LANES).enumerate().map(|(block, panel)| {
            let first = block * LANES;
            (first..(first + LANES).min(self.features), panel.as_chunks().0)
        })
    }
}
