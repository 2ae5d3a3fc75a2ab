//! Moving rows and columns about.

use std::ops::Range;

use crate::{Axis, Backend, Error, Result, Var};

impl<B: Backend> Var<B> {
    /// The matrices side by side; as many rows in each.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let state = Var::new(&backend, [2, 1], vec![1.0, 2.0])?;
    /// let action = Var::new(&backend, [2, 2], vec![3.0, 4.0, 5.0, 6.0])?;
    /// let both = Var::concat_columns(&[&state, &action])?;
    /// assert_eq!(both.to_vec()?, [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn concat_columns(parts: &[&Self]) -> Result<Self> {
        Self::concat("concat_columns", parts, Axis::Columns)
    }

    /// The matrices one below the other; as many columns in each.
    pub fn concat_rows(parts: &[&Self]) -> Result<Self> {
        Self::concat("concat_rows", parts, Axis::Rows)
    }

    /// Some of the columns.
    pub fn slice_columns(&self, range: Range<usize>) -> Result<Self> {
        self.slice("slice_columns", Axis::Columns, range)
    }

    /// Some of the rows.
    pub fn slice_rows(&self, range: Range<usize>) -> Result<Self> {
        self.slice("slice_rows", Axis::Rows, range)
    }

    /// Every row moved down by `shift` (up if negative), those that fall off coming back at the
    /// other end.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let x = Var::new(&DfdxBackend::new(0), [3, 1], vec![1.0, 2.0, 3.0])?;
    /// assert_eq!(x.roll_rows(1)?.to_vec()?, [3.0, 1.0, 2.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn roll_rows(&self, shift: isize) -> Result<Self> {
        let rows = isize::try_from(self.rows()).unwrap_or(isize::MAX);
        let shift = shift.rem_euclid(rows).unsigned_abs();
        Ok(self.with(self.backend.roll(&self.tensor, shift)?))
    }

    /// Row `index[i]` of `self` as row `i`; `index [m, 1]` as [`Var::categorical`] and
    /// [`Var::permutation`] give it.
    ///
    /// ```
    /// use cm_nn::{DfdxBackend, Var};
    ///
    /// let backend = DfdxBackend::new(0);
    /// let actions = Var::new(&backend, [3, 1], vec![1.0, 2.0, 3.0])?;
    /// let shuffled = actions.gather_rows(&Var::permutation(&backend, 3, 0x100)?)?;
    /// let mut values = shuffled.to_vec()?;
    /// values.sort_by(f32::total_cmp);
    /// assert_eq!(values, [1.0, 2.0, 3.0]);
    /// # Ok::<(), cm_nn::Error>(())
    /// ```
    pub fn gather_rows(&self, index: &Self) -> Result<Self> {
        if index.columns() != 1 {
            return Err(Error::shape("gather_rows", "an index of one column", &[index.shape()]));
        }
        Ok(self.with(self.backend.gather(&self.tensor, &index.tensor)?))
    }

    /// Rows as columns.
    pub fn transpose(&self) -> Result<Self> {
        Ok(self.with(self.backend.transpose(&self.tensor)?))
    }

    /// The diagonal of a square matrix as a column.
    pub fn diagonal(&self) -> Result<Self> {
        self.check_square("diagonal")?;
        Ok(self.with(self.backend.diagonal(&self.tensor)?))
    }

    pub(super) fn check_square(&self, operation: &'static str) -> Result<()> {
        let shape = self.shape();
        if shape[0] == shape[1] {
            return Ok(());
        }
        Err(Error::shape(operation, "a square matrix", &[shape]))
    }

    fn concat(operation: &'static str, parts: &[&Self], axis: Axis) -> Result<Self> {
        let other = match axis {
            Axis::Rows => 1,
            Axis::Columns => 0,
        };
        let shapes = parts.iter().map(|part| part.shape()).collect::<Vec<_>>();
        let Some(first) = parts.first() else {
            return Err(Error::shape(operation, "at least one matrix", &shapes));
        };
        if shapes.iter().any(|shape| shape[other] != shapes[0][other]) {
            let direction = ["rows", "columns"][other];
            let expected = format!("equal numbers of {direction}");
            return Err(Error::shape(operation, expected, &shapes));
        }
        let tensors = parts.iter().map(|part| &part.tensor).collect::<Vec<_>>();
        Ok(first.with(first.backend.concat(&tensors, axis)?))
    }

    fn slice(&self, operation: &'static str, axis: Axis, range: Range<usize>) -> Result<Self> {
        let size = self.shape()[axis as usize];
        if range.start >= range.end || range.end > size {
            let expected = format!("a non-empty range within 0..{size}");
            return Err(Error::Shape { operation, expected, found: format!("{range:?}") });
        }
        let count = range.end - range.start;
        Ok(self.with(self.backend.slice(&self.tensor, axis, range.start, count)?))
    }
}
