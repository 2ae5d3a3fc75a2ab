//! Readers of the files people have: D4RL's HDF5, OGBench's and plain NumPy `.npz`, safetensors,
//! CSV, and our own form.
//!
//! | format | trajectories end | notes |
//! |---|---|---|
//! | `.hdf5`, `.h5` (D4RL) | where `timeouts` is set, or as `ends` says | `terminals` mark success and end nothing |
//! | `.npz` (OGBench, NumPy), `.safetensors` | where `timeouts` is set, or as `ends` says, or where `terminals` is set | OGBench sets `terminals` in the last of a trajectory's T + 1 rows |
//! | `.csv` | where the column `trajectory` changes | columns called `observation...` and `action...` |
//! | `.cmdata` | as stored | [`crate::store`] |
//!
//! The first of these arrays that the file has counts. `ends` are integers, each the row after a
//! trajectory's last. The last row always ends a trajectory. [`ReadOptions::xy_jump`] ends one also
//! where the position jumps, for D4RL files whose `timeouts` are missing or wrong. `observations`
//! and `actions` are `[N, ...]` of any real number type and become f32; dimensions after the first
//! are flattened.
//!
//! # HDF5 without the C library
//!
//! HDF5 files are read by the crate `rust-hdf5`, which needs no system library. It was chosen by
//! trying the pure-Rust readers on 54 files written by h5py 3.16 (HDF5 2.0): six format bounds
//! (`libver` earliest, latest and 1.8 to 1.14) times nine storages (contiguous, chunked, one chunk,
//! gzip, gzip 9 with shuffle, with Fletcher-32, LZF, resizable in one and in two dimensions), with
//! f32 and f64 numbers and h5py's boolean enumerations.
//!
//! | crate | read | failed |
//! |---|---|---|
//! | `rust-hdf5` 0.7.9 | 54 | none |
//! | `hdf5-reader` 0.12.1 | 48 | LZF |
//! | `hdf5-pure` 0.47.0 | 46 | chunked layouts that HDF5 2.0 writes under `libver="latest"` with a filter; resizable in two dimensions |
//!
//! In 20,000 files with flipped bytes or a missing end neither of the first two panicked or
//! allocated more than a few megabytes. A gzipped file of a million steps takes `rust-hdf5` about
//! as long as h5py, since both are bound by decompression. Its interface for writing (chunks, gzip,
//! boolean enumerations) is not used yet.

mod arrays;
#[cfg(feature = "csv")]
mod csv;
mod element;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "npz")]
mod npy;
#[cfg(feature = "npz")]
mod npz;
mod safetensors;

use std::path::Path;

use crate::{Dataset, Error, Result};

/// What to read and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Further arrays to keep, by name (`rewards`, `infos/qpos`, ...).
    pub extras: Vec<String>,
    /// End a trajectory also where the first two numbers of the observation move by more than this
    /// between rows.
    pub xy_jump: Option<f32>,
    /// Accept NaN and infinite numbers, to look at a damaged file; otherwise the first one is an
    /// error.
    pub allow_not_finite: bool,
    /// Which columns of a CSV file are what.
    pub csv: CsvColumns,
}

/// Which columns of a CSV file are what.
///
/// The first line of the file names its columns. Rows of a trajectory follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns {
    /// The column that names the trajectory, by any text.
    pub trajectory: String,
    /// The columns whose names start with this are the observation, in the file's order.
    pub observation_prefix: String,
    /// The columns whose names start with this are the action, in the file's order.
    pub action_prefix: String,
}

impl Default for CsvColumns {
    fn default() -> Self {
        Self {
            trajectory: "trajectory".to_owned(),
            observation_prefix: "observation".to_owned(),
            action_prefix: "action".to_owned(),
        }
    }
}

/// Reads the file at `path`, by the format its extension names.
///
/// A `.cmdata` file is checked whole, checksums included, but stays mapped: nothing is copied, and
/// the file must not be changed while it is in use (see [`Dataset::open`]). Every other file is
/// read into memory. A format whose feature is switched off is an error that names the feature.
///
/// ```
/// use cm_replay::{ReadOptions, read};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("walks.csv");
/// std::fs::write(&path, "trajectory,observation_x,action\na,0,1\na,1,1\nb,5,-1\n").unwrap();
/// let data = read(&path, &ReadOptions::default())?;
/// assert_eq!(data.ends(), [2, 3]);
/// # Ok::<(), cm_replay::Error>(())
/// ```
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Dataset> {
    let path = path.as_ref();
    read_by_extension(path, options).map_err(|error| error.in_file(path))
}

fn read_by_extension(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    if let Some(limit) = options.xy_jump.filter(|limit| limit.is_nan() || *limit <= 0.0) {
        let found = limit.to_string();
        return Err(Error::Parameter { name: "the largest xy step", expected: "above 0", found });
    }
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let data = match extension.as_str() {
        #[cfg(feature = "hdf5")]
        "hdf5" | "h5" => hdf5::read(path, options),
        #[cfg(not(feature = "hdf5"))]
        "hdf5" | "h5" => Err(Error::Feature { format: "HDF5", feature: "hdf5" }),
        #[cfg(feature = "npz")]
        "npz" => npz::read(path, options),
        #[cfg(not(feature = "npz"))]
        "npz" => Err(Error::Feature { format: "npz", feature: "npz" }),
        "safetensors" => safetensors::read(path, options),
        #[cfg(feature = "csv")]
        "csv" => csv::read(path, options),
        #[cfg(not(feature = "csv"))]
        "csv" => Err(Error::Feature { format: "CSV", feature: "csv" }),
        "cmdata" => Dataset::open_checked(path),
        _ => Err(Error::Parameter {
            name: "the extension of the file",
            expected: "hdf5, h5, npz, safetensors, csv or cmdata",
            found: format!("`{extension}`"),
        }),
    }?;
    if !options.allow_not_finite {
        data.check_finite()?;
    }
    Ok(data)
}
