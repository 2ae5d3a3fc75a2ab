//! Writes a data set trajectory by trajectory, so that it need never be in memory as a whole.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::header::{ALIGNMENT, ArrayHeader, Header, PREAMBLE_BYTES, Preamble};
use crate::{Error, Result};

/// Writes a `.cmdata` file (see [`crate::store`]) one trajectory at a time.
///
/// The final name appears only with [`StoreWriter::finish`]; a writer dropped before leaves nothing
/// behind.
///
/// ```
/// use cm_replay::store::{StoreWriter, TrajectoryRows};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("walks.cmdata");
/// let mut writer = StoreWriter::create(&path, 2, 1, &[])?;
/// for length in [3, 5] {
///     let observations = vec![0.5; length * 2];
///     let actions = vec![1.0; length];
///     writer.push(TrajectoryRows { observations: &observations, actions: &actions, extras: &[] })?;
/// }
/// writer.finish()?;
/// assert_eq!(cm_replay::Dataset::open(&path)?.ends(), [3, 8]);
/// # Ok::<(), cm_replay::Error>(())
/// ```
#[derive(Debug)]
pub struct StoreWriter {
    path: PathBuf,
    file: NamedTempFile,
    /// Observations go straight into the final file, the others into nameless files until the sizes
    /// are known.
    arrays: Vec<ArrayWriter>,
    ends: Vec<u64>,
}

/// One trajectory of `L` rows: `L * o` observations, `L * a` actions and `L * width` numbers of
/// each extra, in the order given to
/// [`StoreWriter::create`].
#[derive(Clone, Copy, Debug)]
pub struct TrajectoryRows<'a> {
    /// Observations, row after row.
    pub observations: &'a [f32],
    /// Actions, row after row.
    pub actions: &'a [f32],
    /// The extras, row after row.
    pub extras: &'a [&'a [f32]],
}

struct ArrayWriter {
    name: String,
    columns: usize,
    file: BufWriter<File>,
    hash: Xxh3Default,
}

impl StoreWriter {
    /// Starts a file that will be called `path`, with these widths and named extra arrays.
    pub fn create(
        path: impl AsRef<Path>,
        observation_columns: usize,
        action_columns: usize,
        extras: &[(&str, usize)],
    ) -> Result<Self> {
        let path = path.as_ref();
        Self::start(path, observation_columns, action_columns, extras)
            .map_err(|error| error.in_file(path))
    }

    fn start(
        path: &Path,
        observation_columns: usize,
        action_columns: usize,
        extras: &[(&str, usize)],
    ) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| Error::Parameter {
            name: "the output",
            expected: "the name of a file",
            found: path.display().to_string(),
        })?;
        let folder = folder_of(path);
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".cmdata.tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private by default; a data set is an ordinary file, subject to
            // the umask.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file =
            builder.tempfile_in(folder).map_err(Error::io("create a file beside the output"))?;
        file.write_all(&[0; PREAMBLE_BYTES]).map_err(write_error)?;
        let observations = file.as_file().try_clone().map_err(write_error)?;
        let mut arrays = vec![ArrayWriter::new("observations", observation_columns, observations)];
        for &(name, columns) in [("actions", action_columns)].iter().chain(extras) {
            let side = tempfile::tempfile_in(folder)
                .map_err(Error::io("create a temporary file beside the output"))?;
            arrays.push(ArrayWriter::new(name, columns, side));
        }
        Ok(Self { path: path.to_owned(), file, arrays, ends: Vec::new() })
    }

    /// Appends one trajectory of at least one row.
    pub fn push(&mut self, rows: TrajectoryRows) -> Result<()> {
        let length = rows.observations.len() / self.arrays[0].columns.max(1);
        if length == 0 {
            let reason = "a trajectory without rows, expected at least one".to_owned();
            return Err(Error::Trajectories { reason });
        }
        let parts: Vec<&[f32]> = [rows.observations, rows.actions]
            .into_iter()
            .chain(rows.extras.iter().copied())
            .collect();
        if parts.len() != self.arrays.len() {
            let (expected, found) = (self.arrays.len() - 2, rows.extras.len());
            return Err(Error::Buffer { buffer: "extras", expected, found });
        }
        for (array, part) in self.arrays.iter().zip(&parts) {
            if part.len() != length * array.columns {
                return Err(Error::Shape {
                    key: array.name.clone(),
                    expected: format!("{length} rows of {}", array.columns),
                    found: vec![part.len()],
                });
            }
        }
        for (array, part) in self.arrays.iter_mut().zip(parts) {
            array.write(part).map_err(|error| error.in_file(&self.path))?;
        }
        self.ends.push(self.ends.last().unwrap_or(&0) + length as u64);
        Ok(())
    }

    /// Completes the file, flushes it to the disk and gives it its name.
    pub fn finish(self) -> Result<()> {
        let path = self.path.clone();
        self.complete().map_err(|error| error.in_file(&path))
    }

    fn complete(self) -> Result<()> {
        let Self { path, file, arrays, ends } = self;
        let Some(&steps) = ends.last() else {
            let reason = "no trajectory at all, expected at least one".to_owned();
            return Err(Error::Trajectories { reason });
        };
        let mut target = BufWriter::new(file);
        let mut headers = Vec::with_capacity(arrays.len());
        let mut offset = PREAMBLE_BYTES as u64;
        for (number, array) in arrays.into_iter().enumerate() {
            let (mut source, header) = array.end(offset)?;
            if number == 0 {
                target.seek(SeekFrom::End(0)).map_err(write_error)?;
            } else {
                source.seek(SeekFrom::Start(0)).map_err(write_error)?;
                std::io::copy(&mut source, &mut target).map_err(write_error)?;
            }
            offset = pad(&mut target, offset + header.bytes(steps))?;
            headers.push(header);
        }
        let end_bytes: &[u8] = bytemuck::cast_slice(&ends);
        target.write_all(end_bytes).map_err(write_error)?;
        let header = Header {
            steps,
            trajectories: ends.len() as u64,
            ends_offset: offset,
            ends_checksum: xxh3_64(end_bytes),
            arrays: headers,
        };
        let header_offset = pad(&mut target, offset + end_bytes.len() as u64)?;
        let header = header.encode()?;
        target.write_all(&header).map_err(write_error)?;
        let preamble = Preamble {
            header_offset,
            header_length: header.len() as u64,
            header_checksum: xxh3_64(&header),
            file_length: header_offset + header.len() as u64,
        };
        target.seek(SeekFrom::Start(0)).map_err(write_error)?;
        target.write_all(&preamble.encode()).map_err(write_error)?;
        let file = target.into_inner().map_err(|error| write_error(error.into_error()))?;
        let file = file.into_temp_path();
        cm_files::publish(&file, &path).map_err(|error| write_error(error.cause))
    }
}

impl ArrayWriter {
    fn new(name: &str, columns: usize, file: File) -> Self {
        let (file, hash) = (BufWriter::with_capacity(1 << 16, file), Xxh3Default::new());
        Self { name: name.to_owned(), columns, file, hash }
    }

    fn write(&mut self, numbers: &[f32]) -> Result<()> {
        let bytes = bytemuck::cast_slice(numbers);
        self.hash.update(bytes);
        self.file.write_all(bytes).map_err(write_error)
    }

    fn end(self, offset: u64) -> Result<(File, ArrayHeader)> {
        let checksum = self.hash.digest();
        let file = self.file.into_inner().map_err(|error| write_error(error.into_error()))?;
        Ok((file, ArrayHeader { name: self.name, columns: self.columns as u64, offset, checksum }))
    }
}

impl std::fmt::Debug for ArrayWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ArrayWriter({}, {})", self.name, self.columns)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes zeros from `offset` to the next aligned byte and says which that is.
fn pad(target: &mut impl Write, offset: u64) -> Result<u64> {
    let aligned = offset.next_multiple_of(ALIGNMENT);
    let zeros = [0; ALIGNMENT as usize];
    target.write_all(&zeros[..(aligned - offset) as usize]).map_err(write_error)?;
    Ok(aligned)
}

fn write_error(cause: std::io::Error) -> Error {
    Error::Io { operation: "write the file", cause }
}
