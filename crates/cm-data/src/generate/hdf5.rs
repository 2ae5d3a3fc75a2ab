//! A data set in D4RL's HDF5 layout, for other tools.

use std::path::Path;

use cm_replay::{Dataset, Matrix};
use rust_hdf5::types::HBool;
use rust_hdf5::{H5Dataset, H5File, H5Group, Result};

use crate::Error;

/// Rows in a chunk.
const CHUNK: usize = 4096;
/// How hard gzip tries; h5py's default.
const GZIP: u32 = 4;

/// Replaces the file at `path` by `data`, whole or not at all.
pub(super) fn write(data: &Dataset, path: &Path) -> crate::Result<()> {
    let rewards = data.extras().get("rewards");
    let rewards = rewards.ok_or_else(|| Error::content(path, "the data has no rewards"))?;
    cm_files::replace_with(path, |partial| {
        write_file(data, rewards, partial)
            .map_err(|error| Error::content(path, format!("could not be written: {error}")))
    })
}

fn write_file(data: &Dataset, rewards: &Matrix, path: &Path) -> Result<()> {
    let file = H5File::create(path)?;
    let (root, infos) = (file.root_group(), file.create_group("infos")?);
    write_matrix(&root, "observations", data.observations())?;
    write_matrix(&root, "actions", data.actions())?;
    for (name, extra) in data.extras() {
        match name.strip_prefix("infos/") {
            Some(name) => write_matrix(&infos, name, extra)?,
            None => write_vector(&root, name, extra)?,
        }
    }
    // A row is terminal where it is rewarded.
    write_flags(&root, "terminals", rewards.iter().map(|row| row[0] > 0.0))?;
    let mut timeouts = vec![false; data.steps()];
    data.ends().iter().for_each(|&end| timeouts[end - 1] = true);
    write_flags(&root, "timeouts", timeouts.into_iter())?;
    file.close()
}

fn write_matrix(group: &H5Group, name: &str, matrix: &Matrix) -> Result<()> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let array = group
        .new_dataset::<f32>()
        .shape([rows, columns])
        .chunk(&[CHUNK.min(rows), columns])
        .deflate(GZIP)
        .create(name)?;
    slabs(rows, |start, count| {
        let numbers = matrix.numbers(start..start + count);
        array.write_slice(&[start, 0], &[count, columns], &numbers)
    })
}

fn write_vector(group: &H5Group, name: &str, matrix: &Matrix) -> Result<()> {
    let rows = matrix.rows();
    let array = group
        .new_dataset::<f32>()
        .shape([rows])
        .chunk(&[CHUNK.min(rows)])
        .deflate(GZIP)
        .create(name)?;
    slabs(rows, |start, count| {
        array.write_slice(&[start], &[count], &matrix.numbers(start..start + count))
    })
}

fn write_flags(group: &H5Group, name: &str, flags: impl Iterator<Item = bool>) -> Result<()> {
    let flags: Vec<HBool> = flags.map(HBool::from).collect();
    let array: H5Dataset = group
        .new_dataset::<HBool>()
        .shape([flags.len()])
        .chunk(&[CHUNK.min(flags.len())])
        .deflate(GZIP)
        .create(name)?;
    slabs(flags.len(), |start, count| {
        array.write_slice(&[start], &[count], &flags[start..start + count])
    })
}

/// Whole chunks one after another, so that none is compressed twice.
fn slabs(rows: usize, mut write: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
    (0..rows).step_by(CHUNK).try_for_each(|start| write(start, CHUNK.min(rows - start)))
}
