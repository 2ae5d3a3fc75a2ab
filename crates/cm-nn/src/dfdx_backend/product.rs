//! Matrix products by the `gemm` crate, whose newer versions use AVX-512 where dfdx 0.13's own do
//! not.

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
