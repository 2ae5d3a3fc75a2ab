//! NumPy `.npz`: a zip archive of `.npy` files, stored or deflated. Read with bounds on every size
//! a header claims.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;
use zip::read::ZipFile;

use super::ReadOptions;
use super::arrays::{Arrays, Terminals, assemble, largest_inflated};
use super::npy::NpyHeader;
use crate::{Dataset, Error, Matrix, Result};

const FORMAT: &str = "NumPy npz";

pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    let file = File::open(path).map_err(Error::io("open the file"))?;
    let length = file.metadata().map_err(Error::io("inspect the file"))?.len();
    let archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| Error::format(FORMAT, error))?;
    let mut arrays = Npz { archive, length };
    assemble(&mut arrays, Terminals::EndTrajectories, options)
}

struct Npz {
    archive: ZipArchive<BufReader<File>>,
    length: u64,
}

impl Arrays for Npz {
    fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(|name| name.ok());
        names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned()).collect()
    }

    fn numbers(&mut self, name: &str) -> Result<Matrix> {
        let (header, mut file) = self.array(name)?;
        let matrix = header.read_matrix(name, &mut file)?;
        check_end(name, &mut file)?;
        Ok(matrix)
    }

    fn integers(&mut self, name: &str) -> Result<Vec<u64>> {
        let (header, mut file) = self.array(name)?;
        let integers = header.read_integers(name, &mut file)?;
        check_end(name, &mut file)?;
        Ok(integers)
    }
}

impl Npz {
    /// The array's header, its size found plausible, and the rest of its bytes.
    fn array(&mut self, name: &str) -> Result<(NpyHeader, ZipFile<'_, BufReader<File>>)> {
        let mut file = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|error| Error::format(FORMAT, format!("array `{name}`: {error}")))?;
        let header = NpyHeader::read(name, &mut file)?;
        let possible = largest_inflated(file.compressed_size().min(self.length));
        let claimed = header.data_bytes();
        if claimed > u128::from(possible) {
            return Err(Error::Implausible { key: name.to_owned(), claimed, possible });
        }
        let there = file.size().saturating_sub(header.length);
        if claimed != u128::from(there) {
            let (key, expected) = (name.to_owned(), claimed as u64);
            return Err(Error::Truncated { key, expected, found: there });
        }
        Ok((header, file))
    }
}

/// Reading at the end makes the archive compare its checksum, and shows data beyond what the header
/// claims.
fn check_end(name: &str, file: &mut impl Read) -> Result<()> {
    match file.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Error::format(FORMAT, format!("array `{name}` is longer than it claims"))),
        Err(error) => Err(Error::format(FORMAT, format!("array `{name}`: {error}"))),
    }
}
