//! Packed copies of a matrix in which the elements that one register holds lie together.
//!
//! The last panel is padded with zeros; kernels compute the padding along and never give it out.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::{Float, Rows};

/// No register has more elements than this.
pub(crate) const MOST_LANES: usize = 16;

/// Elements of one register of this machine.
pub(crate) fn lanes<E: Float>() -> usize {
    struct Count<E>(std::marker::PhantomData<E>);
    impl<E: Float> WithSimd for Count<E> {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            E::lanes::<S>()
        }
    }
    Arch::new().dispatch(Count(std::marker::PhantomData::<E>))
}

/// Rows side by side: a panel holds, for each feature, that feature of as many rows as a register
/// has lanes.
pub(crate) struct RowPanels<E> {
    data: Aligned<E>,
    lanes: usize,
    features: usize,
    rows: usize,
}

impl<E: Float> RowPanels<E> {
    pub(crate) fn pack(matrix: Rows<'_, E>) -> Self {
        let (rows, features) = (matrix.rows(), matrix.columns());
        let lanes = lanes::<E>();
        let mut data = Aligned::zeros(rows.div_ceil(lanes) * features * lanes);
        data.as_mut().par_chunks_exact_mut(features * lanes).enumerate().for_each(
            |(block, panel)| {
                for lane in 0..lanes.min(rows - block * lanes) {
                    let row = matrix.row(block * lanes + lane);
                    for (slot, &value) in panel[lane..].iter_mut().step_by(lanes).zip(row) {
                        *slot = value;
                    }
                }
            },
        );
        Self { data, lanes, features, rows }
    }

    /// Panels with the rows they hold: `(rows, [features][lanes])`.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (Range<usize>, &[E])> {
        self.data.as_ref().chunks_exact(self.features * self.lanes).enumerate().map(
            |(block, panel)| {
                let first = block * self.lanes;
                (first..(first + self.lanes).min(self.rows), panel)
            },
        )
    }

    /// Number of rows with the padding.
    pub(crate) fn padded_rows(&self) -> usize {
        self.rows.next_multiple_of(self.lanes)
    }
}

/// Features side by side: a panel holds, for each row, as many features as a register has lanes.
pub(crate) struct FeaturePanels<E> {
    data: Aligned<E>,
    lanes: usize,
    rows: usize,
    range: Range<usize>,
}

impl<E: Float> FeaturePanels<E> {
    /// Packs the features in `range`.
    pub(crate) fn pack(matrix: Rows<'_, E>, range: Range<usize>) -> Self {
        let (rows, lanes) = (matrix.rows(), lanes::<E>());
        let mut data = Aligned::zeros(range.len().div_ceil(lanes) * rows * lanes);
        data.as_mut().par_chunks_exact_mut(rows * lanes).enumerate().for_each(|(block, panel)| {
            let first = range.start + block * lanes;
            let last = (first + lanes).min(range.end);
            for (row, slot) in panel.chunks_exact_mut(lanes).enumerate() {
                slot[..last - first].copy_from_slice(&matrix.row(row)[first..last]);
            }
        });
        Self { data, lanes, rows, range }
    }

    /// Panels with the features they hold: `(features, [rows][lanes])`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<usize>, &[E])> {
        self.data.as_ref().chunks_exact(self.rows * self.lanes).enumerate().map(|(block, panel)| {
            let first = self.range.start + block * self.lanes;
            (first..(first + self.lanes).min(self.range.end), panel)
        })
    }
}

/// A buffer that starts at a cache line, so that no register is loaded from two of them.
pub(crate) struct Aligned<E> {
    data: Vec<E>,
    start: usize,
    length: usize,
}

impl<E: Float> Aligned<E> {
    pub(crate) fn zeros(length: usize) -> Self {
        const LINE: usize = 64;
        let data = vec![E::ZERO; length + LINE / size_of::<E>()];
        // Misaligned data would be slower, not wrong, so an offset that cannot be found is no error.
        let start = data.as_ptr().align_offset(LINE).min(LINE / size_of::<E>());
        Self { data, start, length }
    }
}

impl<E> AsRef<[E]> for Aligned<E> {
    fn as_ref(&self) -> &[E] {
        &self.data[self.start..][..self.length]
    }
}

impl<E> AsMut<[E]> for Aligned<E> {
    fn as_mut(&mut self) -> &mut [E] {
        &mut self.data[self.start..][..self.length]
    }
}
