//! A matrix of f32 that lives in memory or in a mapped file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::{Error, Result};

/// Rows of equal width, row-major.
///
/// Rows of a large matrix in memory may be padded to whole cache lines, so that fetching a random
/// one costs as little as can be.
///
/// ```
/// use cm_replay::Matrix;
///
/// let matrix = Matrix::from_vec(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(matrix.row(1), [4.0, 5.0, 6.0]);
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Clone)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    /// Numbers from the start of a row to the start of the next.
    stride: usize,
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    Heap(Arc<Vec<f32>>),
    /// An anonymous map in huge pages: random rows of a large matrix cost far fewer TLB misses than
    /// on the heap.
    Huge(Arc<MmapMut>),
    /// Part of a mapped file, starting at a byte that is a multiple of 64.
    File {
        map: Arc<Mmap>,
        start: usize,
    },
}

/// The size in bytes from which huge pages and padding are worth it.
const HUGE: usize = 4 << 20;
/// Numbers in a cache line.
pub(crate) const LINE: usize = 16;

impl Matrix {
    /// A matrix of `rows * columns` numbers, row after row.
    pub fn from_vec(rows: usize, columns: usize, numbers: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(columns) != Some(numbers.len()) {
            return Err(Error::Buffer {
                buffer: "numbers of a matrix",
                expected: rows.saturating_mul(columns),
                found: numbers.len(),
            });
        }
        if size_of_val(numbers.as_slice()) < HUGE {
            let storage = Storage::Heap(Arc::new(numbers));
            return Ok(Self { rows, columns, stride: columns, storage });
        }
        Self::filled_by(rows, columns, |writer| writer.write(&numbers))
    }

    /// A matrix whose numbers `fill` writes, row after row, in as many pieces as it likes.
    ///
    /// ```
    /// use cm_replay::Matrix;
    ///
    /// let matrix = Matrix::filled_by(2, 2, |writer| {
    ///     writer.write(&[1.0, 2.0, 3.0])?;
    ///     writer.write(&[4.0])
    /// })?;
    /// assert_eq!(matrix.row(1), [3.0, 4.0]);
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn filled_by(
        rows: usize,
        columns: usize,
        fill: impl FnOnce(&mut RowWriter) -> Result<()>,
    ) -> Result<Self> {
        let stride = stride(rows, columns);
        let bytes = rows
            .checked_mul(stride)
            .and_then(|numbers| numbers.checked_mul(size_of::<f32>()))
            .ok_or(Error::Parameter {
                name: "the size of a matrix",
                expected: "addressable",
                found: format!("{rows} x {columns}"),
            })?;
        let storage = if bytes < HUGE {
            let mut numbers = vec![0.0; rows * stride];
            RowWriter::new(&mut numbers, rows, columns, stride).run(fill)?;
            Storage::Heap(Arc::new(numbers))
        } else {
            let mut map = MmapMut::map_anon(bytes).map_err(Error::io("allocate memory"))?;
            // Only advice: where the kernel has no huge pages, ordinary ones serve.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            let numbers = bytemuck::cast_slice_mut(&mut map);
            RowWriter::new(numbers, rows, columns, stride).run(fill)?;
            Storage::Huge(Arc::new(map))
        };
        Ok(Self { rows, columns, stride, storage })
    }

    /// The part of a mapped file from byte `start`, which must be inside it.
    pub(crate) fn mapped(map: Arc<Mmap>, start: usize, rows: usize, columns: usize) -> Self {
        debug_assert!(start.is_multiple_of(size_of::<f32>()));
        debug_assert!(start + rows * columns * size_of::<f32>() <= map.len());
        Self { rows, columns, stride: columns, storage: Storage::File { map, start } }
    }

    /// The matrix with every row changed by `change`: in place if its numbers are in memory and
    /// nobody else has them, otherwise in one copy.
    ///
    /// ```
    /// use cm_replay::Matrix;
    ///
    /// let matrix = Matrix::from_vec(2, 2, vec![1.0, 2.0, 3.0, 4.0])?;
    /// let doubled = matrix.map_rows(|row| row.iter_mut().for_each(|number| *number *= 2.0))?;
    /// assert_eq!(doubled.row(1), [6.0, 8.0]);
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn map_rows(mut self, mut change: impl FnMut(&mut [f32])) -> Result<Self> {
        let (rows, columns, stride) = (self.rows, self.columns, self.stride);
        let own: Option<&mut [f32]> = match &mut self.storage {
            Storage::Heap(numbers) => Arc::get_mut(numbers).map(Vec::as_mut_slice),
            Storage::Huge(map) => Arc::get_mut(map).map(|map| bytemuck::cast_slice_mut(map)),
            Storage::File { .. } => None,
        };
        if let Some(numbers) = own {
            (0..rows).for_each(|row| change(&mut numbers[row * stride..][..columns]));
            return Ok(self);
        }
        let mut changed = Vec::with_capacity(columns);
        Self::filled_by(rows, columns, |writer| {
            self.iter().try_for_each(|row| {
                changed.clear();
                changed.extend_from_slice(row);
                change(&mut changed);
                writer.write(&changed)
            })
        })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row. Panics if there is no such row, as indexing does.
    #[inline]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.padded().0[row * self.stride..][..self.columns]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[f32]> {
        let (numbers, stride) = self.padded();
        (0..self.rows).map(move |row| &numbers[row * stride..][..self.columns])
    }

    /// The numbers of some rows one after another; copied if the rows are padded. Panics if there
    /// are no such rows, as indexing does.
    pub fn numbers(&self, rows: Range<usize>) -> Cow<'_, [f32]> {
        if self.stride == self.columns {
            let numbers = &self.padded().0[rows.start * self.columns..rows.end * self.columns];
            return Cow::Borrowed(numbers);
        }
        Cow::Owned(rows.flat_map(|row| self.row(row)).copied().collect())
    }

    /// Whether the numbers are read from a file as they are used.
    pub fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::File { .. })
    }

    /// All numbers with their padding, and how many lie from the start of a row to the start of the
    /// next.
    #[inline]
    pub(crate) fn padded(&self) -> (&[f32], usize) {
        let numbers = match &self.storage {
            Storage::Heap(numbers) => numbers,
            Storage::Huge(map) => bytemuck::cast_slice(map),
            Storage::File { map, start } => {
                let end = start + self.rows * self.columns * size_of::<f32>();
                bytemuck::cast_slice(&map[*start..end])
            }
        };
        (numbers, self.stride)
    }

    /// The first number that is NaN or infinite, as an error that calls the matrix `key`.
    pub(crate) fn check_finite(&self, key: &str) -> Result<()> {
        for (row, numbers) in self.iter().enumerate() {
            if let Some(column) = numbers.iter().position(|number| !number.is_finite()) {
                let (key, value) = (key.to_owned(), numbers[column]);
                return Err(Error::NotFinite { key, row, column, value });
            }
        }
        Ok(())
    }
}

/// Padding to whole cache lines, or to a part that divides one, where it costs at most a quarter
/// more memory: rows then lie in the fewest lines possible.
fn stride(rows: usize, columns: usize) -> usize {
    let padded = if columns < LINE {
        columns.next_power_of_two()
    } else {
        columns.checked_next_multiple_of(LINE).unwrap_or(columns)
    };
    let large = rows.saturating_mul(columns) >= HUGE / size_of::<f32>();
    if large && padded - columns <= columns / 4 { padded } else { columns }
}

/// Takes the numbers of a matrix in order; see [`Matrix::filled_by`].
#[derive(Debug)]
pub struct RowWriter<'a> {
    target: &'a mut [f32],
    columns: usize,
    stride: usize,
    written: usize,
    total: usize,
}

impl<'a> RowWriter<'a> {
    fn new(target: &'a mut [f32], rows: usize, columns: usize, stride: usize) -> Self {
        Self { target, columns, stride, written: 0, total: rows * columns }
    }

    fn run(mut self, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        fill(&mut self)?;
        if self.written == self.total {
            return Ok(());
        }
        Err(self.wrong_count(self.written))
    }

    /// Appends the next numbers; more than the matrix holds are an error.
    pub fn write(&mut self, mut numbers: &[f32]) -> Result<()> {
        if numbers.len() > self.total - self.written {
            return Err(self.wrong_count(self.written + numbers.len()));
        }
        if self.stride == self.columns {
            self.target[self.written..][..numbers.len()].copy_from_slice(numbers);
            self.written += numbers.len();
            return Ok(());
        }
        while !numbers.is_empty() {
            let (row, column) = (self.written / self.columns, self.written % self.columns);
            let (now, later) = numbers.split_at(numbers.len().min(self.columns - column));
            self.target[row * self.stride + column..][..now.len()].copy_from_slice(now);
            self.written += now.len();
            numbers = later;
        }
        Ok(())
    }

    fn wrong_count(&self, found: usize) -> Error {
        Error::Buffer { buffer: "numbers of a matrix", expected: self.total, found }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.is_mapped() { "mapped" } else { "in memory" };
        write!(formatter, "Matrix[{}, {}] {place}", self.rows, self.columns)
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.columns) == (other.rows, other.columns) && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_large_rows_only_where_it_is_cheap() {
        let large = 10_000_000;
        let strides = [1, 2, 3, 7, 8, 13, 16, 17, 29, 60, 111].map(|width| stride(large, width));
        assert_eq!(strides, [1, 2, 3, 8, 8, 16, 16, 17, 32, 64, 112]);
        assert_eq!((stride(1000, 29), stride(large, 0), stride(usize::MAX, 29)), (29, 0, 32));
    }

    #[test]
    fn rows_change_in_place_unless_somebody_else_has_them() {
        let negate = |row: &mut [f32]| row.iter_mut().for_each(|number| *number = -*number);
        for rows in [3, 50_000] {
            let columns = 29;
            let numbers: Vec<f32> = (0..rows * columns).map(|x| x as f32).collect();
            let negated: Vec<f32> = numbers.iter().map(|number| -number).collect();
            let matrix = Matrix::from_vec(rows, columns, numbers.clone()).unwrap();
            let place = matrix.padded().0.as_ptr();
            let held = matrix.clone();
            let copied = matrix.map_rows(negate).unwrap();
            assert_ne!(copied.padded().0.as_ptr(), place);
            assert!(held.iter().flatten().eq(&numbers) && copied.iter().flatten().eq(&negated));
            let changed = held.map_rows(negate).unwrap();
            assert_eq!(changed.padded().0.as_ptr(), place);
            assert_eq!(changed, copied);
        }
    }

    #[test]
    fn padding_does_not_show() {
        let (rows, columns) = (50_000, 29);
        let numbers: Vec<f32> = (0..rows * columns).map(|x| x as f32).collect();
        let matrix = Matrix::from_vec(rows, columns, numbers.clone()).unwrap();
        assert_eq!(matrix.stride, 32);
        assert_eq!(matrix.row(49_999), &numbers[rows * columns - columns..]);
        assert_eq!(*matrix.numbers(3..5), numbers[3 * columns..5 * columns]);
        assert!(matrix.iter().flatten().eq(&numbers));
        // Pieces that end within rows.
        let pieces = Matrix::filled_by(rows, columns, |writer| {
            numbers.chunks(1000).try_for_each(|piece| writer.write(piece))
        });
        assert_eq!(pieces.unwrap(), matrix);
        for count in [rows * columns - 1, rows * columns + 1] {
            let piece = vec![0.0; count];
            Matrix::filled_by(rows, columns, |writer| writer.write(&piece)).unwrap_err();
        }
    }
}
