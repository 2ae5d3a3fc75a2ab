//! Matrix products by the `gemm` crate, whose newer versions use AVX-512 where dfdx 0.13's own do
//! not.

use pulp::{Arch, Simd, WithSimd};

/// A row-major matrix, or its transpose.
#[derive(Clone, Copy)]
pub(super) struct Factor<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Factor<'a> {
    /// The matrix with `columns` columns stored in `values`.
    pub(super) fn plain(values: &'a [f32], columns: usize) -> Self {
        let rows = values.len() / columns;
        Self { values, rows, columns, row_stride: columns as isize, column_stride: 1 }
    }

    /// The transpose of the matrix with `columns` columns stored in `values`.
    pub(super) fn transposed(values: &'a [f32], columns: usize) -> Self {
        let stored = Self::plain(values, columns);
        Self {
            rows: stored.columns,
            columns: stored.rows,
            row_stride: stored.column_stride,
            column_stride: stored.row_stride,
            ..stored
        }
    }
}

/// `out = a b` if `first`, else `out += a b`.
///
/// # Panics
/// If the sizes do not fit together.
pub(super) fn product(a: Factor<'_>, b: Factor<'_>, out: &mut [f32], first: bool) {
    assert_eq!(a.columns, b.rows, "inner sizes");
    assert_eq!(out.len(), a.rows * b.columns, "size of the result");
    assert_eq!(a.values.len(), a.rows * a.columns, "size of the left factor");
    assert_eq!(b.values.len(), b.rows * b.columns, "size of the right factor");
    if first && a.rows == 1 && b.column_stride == 1 {
        return one_row(a.values, b.values, out);
    }
    // SAFETY: with the sizes just checked, every address that `gemm` computes from these strides
    // lies inside `a`, `b` and `out`, and `out` is borrowed mutably, so it overlaps neither factor.
    // `gemm` does not read `out` if told so.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            b.columns as isize,
            !first,
            a.values.as_ptr(),
            a.column_stride,
            a.row_stride,
            b.values.as_ptr(),
            b.column_stride,
            b.row_stride,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::Rayon(0),
        );
    }
}

/// `out = row b`, of a matrix with a row for each number of `row` or more, of which the first are
/// taken, and a column for each number of `out`.
pub(super) fn one_row(row: &[f32], b: &[f32], out: &mut [f32]) {
    Arch::new().dispatch(OneRow { row, b, out });
}

/// One row times a matrix, with sums that stay in registers: `gemm` reads and writes all of them
/// for each number of the row. The order of additions is the same.
struct OneRow<'a> {
    row: &'a [f32],
    b: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for OneRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (columns, zero) = (self.out.len(), simd.splat_f32s(0.0));
        // Sums that are independent of each other hide how long each takes.
        let whole = self.blocks::<S, 8>(simd, 0);
        let whole = self.blocks::<S, 4>(simd, whole);
        let rest = self.out[whole..].chunks_mut(S::F32_LANES);
        for (out, first) in rest.zip((whole..).step_by(S::F32_LANES)) {
            let mut sum = zero;
            for (&x, b) in self.row.iter().zip(self.b.chunks_exact(columns)) {
                let b = simd.partial_load_f32s(&b[first..first + out.len()]);
                sum = simd.mul_add_e_f32s(simd.splat_f32s(x), b, sum);
            }
            simd.partial_store_f32s(out, sum);
        }
    }
}

impl OneRow<'_> {
    /// The columns from `start` on as far as they fill so many registers at a time; returns the
    /// first of the rest.
    #[inline(always)]
    fn blocks<S: Simd, const REGISTERS: usize>(&mut self, simd: S, start: usize) -> usize {
        let (columns, block) = (self.out.len(), REGISTERS * S::F32_LANES);
        let end = columns - (columns - start) % block;
        let blocks = self.out[start..end].chunks_exact_mut(block);
        for (out, first) in blocks.zip((start..).step_by(block)) {
            let mut sums = [simd.splat_f32s(0.0); REGISTERS];
            for (&x, b) in self.row.iter().zip(self.b.chunks_exact(columns)) {
                let x = simd.splat_f32s(x);
                let b = S::as_simd_f32s(&b[first..first + block]).0;
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = simd.mul_add_e_f32s(x, b, *sum);
                }
            }
            S::as_mut_simd_f32s(out).0.copy_from_slice(&sums);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_is_as_in_a_matrix_of_two() {
        let numbers =
            |count: usize| (0..count).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>();
        for (inner, columns) in [(1, 1), (3, 2), (80, 64), (64, 256), (7, 203)] {
            let (a, b) = (numbers(inner), numbers(inner * columns));
            let (mut one, mut two) = (vec![f32::NAN; columns], vec![f32::NAN; 2 * columns]);
            let b = Factor::plain(&b, columns);
            product(Factor::plain(&a, inner), b, &mut one, true);
            product(Factor::plain(&a.repeat(2), inner), b, &mut two, true);
            for (one, two) in one.iter().zip(&two) {
                assert!((one - two).abs() <= 1e-5, "{inner} x {columns}: {one}, {two}");
            }
        }
    }
}
