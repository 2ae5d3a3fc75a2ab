//! Packed copies of a matrix in which the elements that one register holds lie together.
//!
//! The last panel is padded with zeros; kernels compute the padding along and never give it out.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::threads::least;
use crate::{Float, Rows};

/// No register has more elements than this.
pub(crate) const MOST_LANES: usize = 16;

/// What copying an element takes, in elements of a distance.
const PACK: usize = 4;

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
pub(crate) struct RowPanels<E: Float> {
    data: Aligned<E>,
    lanes: usize,
    features: usize,
    rows: usize,
}

impl<E: Float> RowPanels<E> {
    pub(crate) fn pack(matrix: Rows<'_, E>) -> Self {
        let (rows, features) = (matrix.rows(), matrix.columns());
        let lanes = lanes::<E>();
        let mut data = Aligned::take(rows.div_ceil(lanes) * features * lanes);
        let panels = data.as_mut().par_chunks_exact_mut(features * lanes);
        panels.with_min_len(least(PACK * features * lanes)).enumerate().for_each(
            |(block, panel)| {
                if rows - block * lanes < lanes {
                    panel.fill(E::ZERO);
                }
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
pub(crate) struct FeaturePanels<E: Float> {
    data: Aligned<E>,
    lanes: usize,
    rows: usize,
    range: Range<usize>,
}

impl<E: Float> FeaturePanels<E> {
    /// Packs the features in `range`.
    pub(crate) fn pack(matrix: Rows<'_, E>, range: Range<usize>) -> Self {
        let (rows, lanes) = (matrix.rows(), lanes::<E>());
        let mut data = Aligned::take(range.len().div_ceil(lanes) * rows * lanes);
        let panels = data.as_mut().par_chunks_exact_mut(rows * lanes);
        panels.with_min_len(least(PACK * rows * lanes)).enumerate().for_each(|(block, panel)| {
            let first = range.start + block * lanes;
            let last = (first + lanes).min(range.end);
            for (row, slot) in panel.chunks_exact_mut(lanes).enumerate() {
                slot[..last - first].copy_from_slice(&matrix.row(row)[first..last]);
                slot[last - first..].fill(E::ZERO);
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

/// A buffer that starts at a cache line, so that no register is loaded from two of them, and whose
/// memory is used again: fresh memory has to be cleared by the system, page by page.
pub(crate) struct Aligned<E: Float> {
    data: Vec<E>,
    start: usize,
    length: usize,
}

/// Elements that a thread keeps for use again.
const MOST_KEPT: usize = 1 << 23;

impl<E: Float> Aligned<E> {
    /// A buffer of arbitrary numbers.
    pub(crate) fn take(length: usize) -> Self {
        const LINE: usize = 64;
        let whole = length + LINE / size_of::<E>();
        let spare = E::spare().with_borrow_mut(|spare| {
            let place = spare.iter().position(|data| data.len() == whole)?;
            Some(spare.swap_remove(place))
        });
        let data = spare.unwrap_or_else(|| vec![E::ZERO; whole]);
        // Misaligned data would be slower, not wrong, so an offset that cannot be found is no
        // error.
        let start = data.as_ptr().align_offset(LINE).min(LINE / size_of::<E>());
        Self { data, start, length }
    }
}

impl<E: Float> Drop for Aligned<E> {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        // At the end of a thread its spare buffers may be gone already.
        let _ = E::spare().try_with(|spare| {
            let mut spare = spare.borrow_mut();
            // Mostly of sizes no longer in use.
            if spare.iter().map(Vec::len).sum::<usize>() + data.len() > MOST_KEPT {
                spare.clear();
            }
            spare.push(data);
        });
    }
}

impl<E: Float> AsRef<[E]> for Aligned<E> {
    fn as_ref(&self) -> &[E] {
        &self.data[self.start..][..self.length]
    }
}

impl<E: Float> AsMut<[E]> for Aligned<E> {
    fn as_mut(&mut self) -> &mut [E] {
        &mut self.data[self.start..][..self.length]
    }
}
