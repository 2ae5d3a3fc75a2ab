//! A data set in OGBench's form, for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use cm_replay::{Dataset, Matrix};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::Error;

/// Rows that are written at a time.
const ROWS: usize = 4096;

/// Replaces the file at `path` by `data`, whole or not at all: observations, actions, qpos and qvel
/// as 32-bit numbers, and terminals, true in the last row of each episode.
pub(super) fn write(data: &Dataset, path: &Path) -> crate::Result<()> {
    cm_files::replace_with(path, |partial| {
        write_file(data, partial)
            .map_err(|error| Error::content(path, format!("could not be written: {error}")))
    })
}

fn write_file(data: &Dataset, path: &Path) -> std::io::Result<()> {
    let mut archive = ZipWriter::new(BufWriter::new(File::create(path)?));
    write_matrix(&mut archive, "observations", data.observations())?;
    write_matrix(&mut archive, "actions", data.actions())?;
    for name in ["qpos", "qvel"] {
        if let Some(matrix) = data.extras().get(name) {
            write_matrix(&mut archive, name, matrix)?;
        }
    }
    let mut terminals = vec![0; data.steps()];
    data.ends().iter().for_each(|&end| terminals[end - 1] = 1);
    begin(&mut archive, "terminals", "|b1", &format!("({},)", terminals.len()))?;
    archive.write_all(&terminals)?;
    archive.finish()?.into_inner().map_err(|error| error.into_error())?.sync_all()
}

fn write_matrix(
    archive: &mut ZipWriter<BufWriter<File>>,
    name: &str,
    matrix: &Matrix,
) -> std::io::Result<()> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    begin(archive, name, "<f4", &format!("({rows}, {columns})"))?;
    for start in (0..rows).step_by(ROWS) {
        let numbers = matrix.numbers(start..rows.min(start + ROWS));
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        archive.write_all(&bytes)?;
    }
    Ok(())
}

/// Begins an array in NumPy's own form: a header that fills whole blocks of 64 bytes.
fn begin(
    archive: &mut ZipWriter<BufWriter<File>>,
    name: &str,
    element: &str,
    shape: &str,
) -> std::io::Result<()> {
    let options = SimpleFileOptions::default().large_file(true);
    archive.start_file(format!("{name}.npy"), options)?;
    let mut header =
        format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = 10;
    let length = (before + header.len() + 1).next_multiple_of(64) - before;
    while header.len() + 1 < length {
        header.push(' ');
    }
    header.push('\n');
    archive.write_all(b"\x93NUMPY\x01\x00")?;
    archive.write_all(&(length as u16).to_le_bytes())?;
    archive.write_all(header.as_bytes())
}
