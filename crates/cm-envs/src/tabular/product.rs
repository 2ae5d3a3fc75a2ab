//! Products of blocks of matrices, by the `gemm` crate.

/// A block of a row-major matrix.
pub(super) struct Block<'a> {
    values: &'a [f64],
    stride: usize,
    rows: usize,
    columns: usize,
}

/// A block of a row-major matrix, to be written.
pub(super) struct BlockMut<'a> {
    values: &'a mut [f64],
    stride: usize,
    rows: usize,
    columns: usize,
}

impl<'a> Block<'a> {
    /// The block of `rows` x `columns` at `(row, column)` of the matrix in `values` with rows of
    /// `stride` numbers.
    ///
    /// # Panics
    /// If the matrix has no such block.
    pub(super) fn new(
        values: &'a [f64],
        stride: usize,
        (row, column): (usize, usize),
        (rows, columns): (usize, usize),
    ) -> Self {
        let range = range(stride, (row, column), (rows, columns));
        Self { values: &values[range], stride, rows, columns }
    }
}

impl<'a> BlockMut<'a> {
    /// [`Block::new`].
    pub(super) fn new(
        values: &'a mut [f64],
        stride: usize,
        (row, column): (usize, usize),
        (rows, columns): (usize, usize),
    ) -> Self {
        let range = range(stride, (row, column), (rows, columns));
        Self { values: &mut values[range], stride, rows, columns }
    }
}

/// From the first to the last number of a block.
fn range(
    stride: usize,
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> std::ops::Range<usize> {
    assert!(column + columns <= stride, "columns {column} + {columns} of {stride}");
    let start = row * stride + column;
    match rows.checked_sub(1) {
        Some(others) if columns > 0 => start..start + others * stride + columns,
        _ => 0..0,
    }
}

/// `out += a b`.
///
/// # Panics
/// If the sizes do not fit together.
pub(super) fn add_product(
    out: BlockMut<'_>,
    a: Block<'_>,
    b: Block<'_>,
    threads: gemm::Parallelism,
) {
    assert_eq!((out.rows, out.columns), (a.rows, b.columns), "size of the result");
    assert_eq!(a.columns, b.rows, "inner sizes");
    if out.values.is_empty() || a.values.is_empty() {
        return;
    }
    // SAFETY: a block's slice reaches from its first number to its last, so every address that
    // `gemm` computes from these sizes and strides lies inside; `out` is borrowed mutably, so it
    // overlaps neither factor.
    unsafe {
        gemm::gemm(
            out.rows,
            out.columns,
            a.columns,
            out.values.as_mut_ptr(),
            1,
            out.stride as isize,
            true,
            a.values.as_ptr(),
            1,
            a.stride as isize,
            b.values.as_ptr(),
            1,
            b.stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
    }
}
