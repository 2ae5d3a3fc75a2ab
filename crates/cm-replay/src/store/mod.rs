//! The on-disk form of a data set, made to be memory-mapped: `.cmdata`.
//!
//! All numbers are little-endian. The file is
//!
//! | bytes | holds |
//! |---|---|
//! | 0..64 | preamble: magic `CMREPLAY`, version (u32), 4 zero bytes, offset, length and checksum of the header (u64 each), length of the file (u64), checksum of bytes 0..48 (u64), 8 zero bytes |
//! | then | the arrays, each at a multiple of 64 bytes with zeros before it: observations, actions, extras as row-major f32; trajectory ends as u64 |
//! | then | the header: name, width, offset and checksum of every array, encoded by bincode 2 in its standard configuration |
//!
//! Checksums are XXH3 (64 bits): it runs at memory speed, so that checking a file costs no more
//! than reading it, and 64 bits leave no realistic chance for accidental damage to pass. It is no
//! protection against forgery.
//!
//! A file is written beside its final name, flushed to the disk and renamed, so that under the
//! final name there is either nothing (or the file that was there before) or a complete file. A
//! process killed in between leaves a hidden `.*.cmdata.tmp` that may be deleted.

mod header;
mod map;
mod writer;

use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use self::header::{ArrayHeader, Header, PREAMBLE_BYTES, Preamble};
pub(crate) use self::map::map_file;
pub use self::writer::{StoreWriter, TrajectoryRows};
use crate::{Dataset, Error, Matrix, Result};

const FORMAT: &str = "cmdata";

impl Dataset {
    /// Writes the data set to `path` in the form described in [`crate::store`].
    ///
    /// ```
    /// use cm_replay::{Dataset, Matrix};
    ///
    /// let numbers = Matrix::from_vec(3, 1, vec![0.0, 1.0, 2.0])?;
    /// let data = Dataset::new(numbers.clone(), numbers, vec![1, 3])?;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("line.cmdata");
    /// data.save(&path)?;
    /// assert_eq!(Dataset::open(&path)?, data); // mapped
    /// assert_eq!(Dataset::load(&path)?, data); // in memory, checked
    /// # Ok::<(), cm_replay::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let extras: Vec<_> =
            self.extras().iter().map(|(name, extra)| (name.as_str(), extra.columns())).collect();
        let mut writer = StoreWriter::create(
            path,
            self.observations().columns(),
            self.actions().columns(),
            &extras,
        )?;
        for trajectory in 0..self.trajectories() {
            let rows = self.trajectory(trajectory);
            let extras: Vec<_> =
                self.extras().values().map(|extra| extra.numbers(rows.clone())).collect();
            let extras: Vec<&[f32]> = extras.iter().map(AsRef::as_ref).collect();
            writer.push(TrajectoryRows {
                observations: &self.observations().numbers(rows.clone()),
                actions: &self.actions().numbers(rows),
                extras: &extras,
            })?;
        }
        writer.finish()
    }

    /// Maps the file at `path`: numbers are read from the disk as they are used, so the data set
    /// may be larger than memory.
    ///
    /// The header and the trajectory ends are checked; the checksums of the arrays are not, since
    /// that would read the whole file ([`read`](crate::read()) checks them). The file must not be
    /// changed while it is mapped; replacing it, as [`Dataset::save`] does, is fine.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        open_mapped(path, false).map_err(|error| error.in_file(path))
    }

    /// [`Self::open`] once every checksum has been found right.
    pub(crate) fn open_checked(path: &Path) -> Result<Self> {
        open_mapped(path, true).map_err(|error| error.in_file(path))
    }

    /// Reads the file at `path` into memory and checks every checksum.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        load_checked(path).map_err(|error| error.in_file(path))
    }
}

fn open_mapped(path: &Path, checked: bool) -> Result<Dataset> {
    let map = Arc::new(map_file(path)?);
    let header = read_header(&map)?;
    assemble(&map, &header, |array, columns| {
        if checked {
            check_array(&map, &header, array)?;
        }
        let rows = header.steps as usize;
        Ok(Matrix::mapped(map.clone(), array.offset as usize, rows, columns))
    })
}

fn load_checked(path: &Path) -> Result<Dataset> {
    let map = Arc::new(map_file(path)?);
    let header = read_header(&map)?;
    assemble(&map, &header, |array, columns| {
        let bytes = check_array(&map, &header, array)?;
        Matrix::filled_by(header.steps as usize, columns, |writer| {
            writer.write(bytemuck::cast_slice(bytes))
        })
    })
}

/// The header, with every array known to lie inside the file.
fn read_header(map: &Mmap) -> Result<Header> {
    let preamble: &[u8; PREAMBLE_BYTES] = map
        .first_chunk()
        .ok_or_else(|| Error::format(FORMAT, format!("only {} bytes long", map.len())))?;
    let preamble = Preamble::decode(preamble)?;
    if preamble.file_length != map.len() as u64 {
        return Err(Error::Truncated {
            key: "the whole file".to_owned(),
            expected: preamble.file_length,
            found: map.len() as u64,
        });
    }
    let bytes = usize::try_from(preamble.header_offset)
        .ok()
        .zip(usize::try_from(preamble.header_length).ok())
        .and_then(|(offset, length)| map.get(offset..offset.checked_add(length)?))
        .ok_or_else(|| Error::format(FORMAT, "the header lies outside the file"))?;
    check_sum("the header", bytes, preamble.header_checksum)?;
    let header = Header::decode(bytes)?;
    header.check_arrays(preamble.header_offset)?;
    Ok(header)
}

fn assemble(
    map: &Mmap,
    header: &Header,
    matrix: impl Fn(&ArrayHeader, usize) -> Result<Matrix>,
) -> Result<Dataset> {
    let [observations, actions, extras @ ..] = header.arrays.as_slice() else {
        return Err(Error::format(FORMAT, "fewer than two arrays"));
    };
    let read = |array: &ArrayHeader| matrix(array, array.columns as usize);
    let ends = read_ends(map, header)?;
    let data = Dataset::new(read(observations)?, read(actions)?, ends)?;
    extras.iter().try_fold(data, |data, extra| data.with_extra(extra.name.clone(), read(extra)?))
}

fn read_ends(map: &Mmap, header: &Header) -> Result<Vec<usize>> {
    let start = header.ends_offset as usize;
    let bytes = &map[start..start + header.trajectories as usize * size_of::<u64>()];
    check_sum("the trajectory ends", bytes, header.ends_checksum)?;
    let numbers: &[u64] = bytemuck::cast_slice(bytes);
    Ok(numbers.iter().map(|&end| end as usize).collect())
}

fn check_array<'a>(map: &'a Mmap, header: &Header, array: &ArrayHeader) -> Result<&'a [u8]> {
    let start = array.offset as usize;
    let bytes = &map[start..start + array.bytes(header.steps) as usize];
    check_sum(&format!("array `{}`", array.name), bytes, array.checksum)?;
    Ok(bytes)
}

fn check_sum(part: &str, bytes: &[u8], expected: u64) -> Result<()> {
    let found = xxh3_64(bytes);
    if found == expected {
        return Ok(());
    }
    Err(Error::Checksum { part: part.to_owned(), expected, found })
}
