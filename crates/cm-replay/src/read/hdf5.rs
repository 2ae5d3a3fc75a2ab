//! HDF5 as h5py writes it, in D4RL's layout.

use std::path::Path;

use rust_hdf5::format::messages::datatype::DatatypeMessage;
use rust_hdf5::{H5Dataset, H5File, H5Type};

use super::ReadOptions;
use super::arrays::{Arrays, Terminals, assemble, largest_inflated};
use crate::{Dataset, Error, Matrix, Result};

const FORMAT: &str = "HDF5";

pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    let length = std::fs::metadata(path).map_err(Error::io("inspect the file"))?.len();
    // Data sets often lie on read-only or network disks, where locks fail.
    let file = H5File::options()
        .best_effort_locking()
        .open(path)
        .map_err(|error| Error::format(FORMAT, error))?;
    assemble(&mut Hdf5 { file, length }, Terminals::MarkSuccess, options)
}

struct Hdf5 {
    file: H5File,
    length: u64,
}

impl Arrays for Hdf5 {
    fn names(&self) -> Vec<String> {
        self.file.dataset_names()
    }

    fn numbers(&mut self, name: &str) -> Result<Matrix> {
        let (dataset, datatype) = self.array(name)?;
        match scalar_type(&datatype) {
            Some((Class::Float, 4)) => read_rows(name, &dataset, |x: f32| x),
            Some((Class::Float, 8)) => read_rows(name, &dataset, |x: f64| x as f32),
            Some((Class::Signed, 1)) => read_rows(name, &dataset, |x: i8| x.into()),
            Some((Class::Signed, 2)) => read_rows(name, &dataset, |x: i16| x.into()),
            Some((Class::Signed, 4)) => read_rows(name, &dataset, |x: i32| x as f32),
            Some((Class::Signed, 8)) => read_rows(name, &dataset, |x: i64| x as f32),
            Some((Class::Unsigned, 1)) => read_rows(name, &dataset, |x: u8| x.into()),
            Some((Class::Unsigned, 2)) => read_rows(name, &dataset, |x: u16| x.into()),
            Some((Class::Unsigned, 4)) => read_rows(name, &dataset, |x: u32| x as f32),
            Some((Class::Unsigned, 8)) => read_rows(name, &dataset, |x: u64| x as f32),
            _ => {
                let expected = "f32, f64, integers or booleans";
                Err(Error::ElementType {
                    key: name.to_owned(),
                    expected,
                    found: format!("{datatype:?}"),
                })
            }
        }
    }

    fn integers(&mut self, name: &str) -> Result<Vec<u64>> {
        let (dataset, datatype) = self.array(name)?;
        let wrong = |found: String| {
            let expected = "64-bit integers that are not negative";
            Error::ElementType { key: name.to_owned(), expected, found }
        };
        // The two types have the same bytes; negative ones would be beyond any number of rows.
        match scalar_type(&datatype) {
            Some((Class::Signed | Class::Unsigned, 8)) => dataset
                .read_raw::<i64>()
                .map_err(|error| array_error(name, error))?
                .into_iter()
                .map(|end| u64::try_from(end).map_err(|_| wrong(format!("{end}"))))
                .collect(),
            _ => Err(wrong(format!("{datatype:?}"))),
        }
    }
}

#[derive(Clone, Copy)]
enum Class {
    Float,
    Signed,
    Unsigned,
}

/// Class and bytes of a number; h5py's booleans are enumerations of an 8-bit integer.
fn scalar_type(datatype: &DatatypeMessage) -> Option<(Class, u32)> {
    match datatype {
        DatatypeMessage::FloatingPoint { size, .. } => Some((Class::Float, *size)),
        DatatypeMessage::FixedPoint { size, signed: true, .. } => Some((Class::Signed, *size)),
        DatatypeMessage::FixedPoint { size, signed: false, .. } => Some((Class::Unsigned, *size)),
        DatatypeMessage::Enum { base, .. } => scalar_type(base),
        _ => None,
    }
}

impl Hdf5 {
    fn array(&self, name: &str) -> Result<(H5Dataset, DatatypeMessage)> {
        let dataset = self.file.dataset(name).map_err(|error| array_error(name, error))?;
        self.check_size(name, &dataset)?;
        let datatype = dataset.datatype().map_err(|error| array_error(name, error))?;
        Ok((dataset, datatype))
    }

    /// Refuses shapes that no file of this length can hold, before anything is allocated for them.
    fn check_size(&self, name: &str, dataset: &H5Dataset) -> Result<()> {
        let possible = largest_inflated(self.length);
        let shapes = [Some(dataset.shape()), dataset.chunk_dims()];
        for shape in shapes.into_iter().flatten() {
            let claimed = shape
                .iter()
                .try_fold(dataset.element_size() as u128, |bytes, &size| {
                    bytes.checked_mul(size as u128)
                })
                .unwrap_or(u128::MAX);
            if claimed > u128::from(possible) {
                return Err(Error::Implausible { key: name.to_owned(), claimed, possible });
            }
        }
        Ok(())
    }
}

/// Reads a slab of rows at a time, so that beside the result only a few megabytes are needed.
fn read_rows<T: H5Type>(
    name: &str,
    dataset: &H5Dataset,
    convert: impl Fn(T) -> f32,
) -> Result<Matrix> {
    const SLAB_BYTES: usize = 16 << 20;
    let shape = dataset.shape();
    let [rows, others @ ..] = shape.as_slice() else {
        let (key, expected) = (name.to_owned(), "[N, ...]".to_owned());
        return Err(Error::Shape { key, expected, found: shape });
    };
    let columns: usize = others.iter().product();
    // Whole chunks, so that none is decompressed twice.
    let chunk_rows =
        dataset.chunk_dims().and_then(|chunk| chunk.first().copied()).unwrap_or(1).max(1);
    let row_bytes = (columns * dataset.element_size()).max(1);
    let slab_rows = (SLAB_BYTES / row_bytes).max(1).next_multiple_of(chunk_rows);
    Matrix::filled_by(*rows, columns, |writer| {
        // Rows without columns can be as many as a header likes to claim.
        let rows = if columns == 0 { 0 } else { *rows };
        for start in (0..rows).step_by(slab_rows) {
            let (mut starts, mut counts) = (vec![0; shape.len()], shape.clone());
            starts[0] = start;
            counts[0] = slab_rows.min(rows - start);
            let numbers = dataset
                .read_slice::<T>(&starts, &counts)
                .map_err(|error| array_error(name, error))?;
            writer.write(&numbers.into_iter().map(&convert).collect::<Vec<f32>>())?;
        }
        Ok(())
    })
}

fn array_error(name: &str, error: rust_hdf5::Hdf5Error) -> Error {
    Error::format(FORMAT, format!("array `{name}`: {error}"))
}
