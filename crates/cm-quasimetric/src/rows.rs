//! A borrowed row-major matrix.

use crate::{Error, Float};

/// A borrowed row-major matrix: `rows` points of `columns` features each.
///
/// ```
/// use cm_quasimetric::Rows;
///
/// let points = Rows::new(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
/// assert_eq!(points.row(1), [4.0, 5.0, 6.0]);
/// assert!(Rows::new(&[1.0_f32; 5], 2, 3).is_err());
/// # Ok::<(), cm_quasimetric::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, E> {
    data: &'a [E],
    rows: usize,
    columns: usize,
}

impl<'a, E: Float> Rows<'a, E> {
    /// Views `data` as `rows` x `columns`; an error if the length is not `rows * columns`.
    pub fn new(data: &'a [E], rows: usize, columns: usize) -> Result<Self, Error> {
        if rows.checked_mul(columns) != Some(data.len()) {
            return Err(Error::Length {
                what: "data",
                found: data.len(),
                expected: (rows, columns),
            });
        }
        Ok(Self { data, rows, columns })
    }

    /// Number of points.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of features of each point.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The features of point `index`.
    ///
    /// # Panics
    /// If `index` is not below [`rows`](Self::rows), like indexing a slice.
    #[inline(always)]
    pub fn row(&self, index: usize) -> &'a [E] {
        &self.data[index * self.columns..(index + 1) * self.columns]
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }
}
