//! A matrix of f32 that lives in memory or in a mapped file.

use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::{Error, Result};

/// Rows of equal width, row-major.
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
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    Heap(Arc<Vec<f32>>),
    /// An anonymous map in huge pages: random rows of a large matrix cost far fewer TLB misses than on the heap.
    Huge(Arc<MmapMut>),
    /// Part of a mapped file, starting at a byte that is a multiple of 64.
    File {
        map: Arc<Mmap>,
        start: usize,
    },
}

/// The size in bytes from which huge pages are worth asking for.
const HUGE: usize = 4 << 20;

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
        if numbers.len() * size_of::<f32>() < HUGE {
            return Ok(Self { rows, columns, storage: Storage::Heap(Arc::new(numbers)) });
        }
        Self::filled_by(rows, columns, |target| {
            target.copy_from_slice(&numbers);
            Ok(())
        })
    }

    /// A matrix whose numbers, zero at first, `fill` writes.
    pub fn filled_by(
        rows: usize,
        columns: usize,
        fill: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<Self> {
        let bytes = rows
            .checked_mul(columns)
            .and_then(|numbers| numbers.checked_mul(size_of::<f32>()))
            .ok_or(Error::Parameter {
                name: "the size of a matrix",
                expected: "addressable",
                found: format!("{rows} x {columns}"),
            })?;
        if bytes < HUGE {
            let mut numbers = vec![0.0; rows * columns];
            fill(&mut numbers)?;
            return Ok(Self { rows, columns, storage: Storage::Heap(Arc::new(numbers)) });
        }
        let mut map = MmapMut::map_anon(bytes).map_err(Error::io("allocate memory"))?;
        // Only advice: where the kernel has no huge pages, ordinary ones serve.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        fill(bytemuck::cast_slice_mut(&mut map))?;
        Ok(Self { rows, columns, storage: Storage::Huge(Arc::new(map)) })
    }

    /// The part of a mapped file from byte `start`, which must be inside it.
    pub(crate) fn mapped(map: Arc<Mmap>, start: usize, rows: usize, columns: usize) -> Self {
        debug_assert!(start.is_multiple_of(size_of::<f32>()));
        debug_assert!(start + rows * columns * size_of::<f32>() <= map.len());
        Self { rows, columns, storage: Storage::File { map, start } }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many numbers a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All numbers, row after row.
    #[inline]
    pub fn numbers(&self) -> &[f32] {
        match &self.storage {
            Storage::Heap(numbers) => numbers,
            Storage::Huge(map) => bytemuck::cast_slice(map),
            Storage::File { map, start } => {
                let end = start + self.rows * self.columns * size_of::<f32>();
                bytemuck::cast_slice(&map[*start..end])
            }
        }
    }

    /// One row. Panics if there is no such row, as indexing does.
    #[inline]
    pub fn row(&self, row: usize) -> &[f32] {
        &self.numbers()[row * self.columns..][..self.columns]
    }

    /// Whether the numbers are read from a file as they are used.
    pub fn is_mapped(&self) -> bool {
        matches!(self.storage, Storage::File { .. })
    }

    /// The first number that is NaN or infinite, as an error that calls the matrix `key`.
    pub(crate) fn check_finite(&self, key: &str) -> Result<()> {
        match self.numbers().iter().position(|number| !number.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::NotFinite {
                key: key.to_owned(),
                row: at / self.columns,
                column: at % self.columns,
                value: self.numbers()[at],
            }),
        }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = match self.storage {
            Storage::File { .. } => "mapped",
            _ => "in memory",
        };
        write!(formatter, "Matrix[{}, {}] {place}", self.rows, self.columns)
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.columns) == (other.rows, other.columns)
            && self.numbers() == other.numbers()
    }
}
