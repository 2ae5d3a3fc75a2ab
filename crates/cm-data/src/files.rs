//! Files of data sets: checked, converted, summarised.

use std::path::Path;

use cm_replay::{Dataset, ReadOptions, Summary};

use crate::download::{DownloadSettings, download};
use crate::output::{Turn, make_parent};
use crate::progress::Stage;
use crate::{Cache, Error, Manifest, Progress, Result, sha256_of_file};

/// A file that is what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// Its checksum.
    pub sha256: String,
    /// Trajectories in it.
    pub trajectories: usize,
    /// Rows in it.
    pub steps: usize,
}

/// Checks a downloaded data set: checksums, then that the files hold what the manifest says.
pub fn verify(manifest: &Manifest, cache: &Cache, progress: Progress<'_>) -> Result<Vec<Verified>> {
    let mut verified = Vec::new();
    for file in &manifest.files {
        let path = cache.path(&file.name);
        if !path.exists() {
            return Err(Error::NotDownloaded { path, dataset: manifest.name.clone() });
        }
        let found = sha256_of_file(&path, progress)?;
        match cache.checksum(file)?.digits() {
            Some(expected) if expected == found => {}
            Some(expected) => {
                return Err(Error::Checksum { path, expected: expected.to_owned(), found });
            }
            None => return Err(Error::NoChecksum { path }),
        }
        let data = read(&path, &ReadOptions::default(), progress)?;
        let widths = (data.observations().columns(), data.actions().columns());
        let expected = (manifest.observations, manifest.actions);
        if widths != expected {
            let what = "observations and actions have widths";
            let reason = format!("{what} {widths:?}, expected {expected:?}");
            return Err(Error::Content { path, reason });
        }
        let (trajectories, steps) = (data.trajectories(), data.steps());
        verified.push(Verified { name: file.name.clone(), sha256: found, trajectories, steps });
    }
    Ok(verified)
}

/// Converts a file to the memory-mapped form, `.cmdata`, and gives what it holds.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ReadOptions,
    progress: Progress<'_>,
) -> Result<Dataset> {
    check_extension(output)?;
    let data = read(input, options, progress)?;
    let _stage = Stage::busy(progress, &format!("writing {}", output.display()));
    data.save(output)?;
    Ok(data)
}

/// Sizes, ranges and defects of a file; one of our own form need not fit into memory.
pub fn summarise(file: &Path, options: &ReadOptions, progress: Progress<'_>) -> Result<Summary> {
    let mapped = file.extension().is_some_and(|extension| extension == "cmdata");
    let data = if mapped { Dataset::open(file)? } else { read(file, options, progress)? };
    let _stage = Stage::busy(progress, &format!("summarising {}", file.display()));
    Ok(Summary::of(&data))
}

/// The data set of one file as `output`: downloaded, unless it is in the cache, and converted, unless
/// `output` is there. Of several processes one does it, the others wait.
pub fn download_converted(
    name: &str,
    cache: &Cache,
    output: &Path,
    progress: Progress<'_>,
) -> Result<Dataset> {
    let manifest = Manifest::find(name, cache)?;
    let [file] = &manifest.files[..] else {
        return Err(Error::Setting {
            setting: "data set",
            expected: "one of a single file".to_owned(),
            found: format!("{name} of {}", manifest.files.len()),
        });
    };
    check_extension(output)?;
    make_parent(output)?;
    let Some(_turn) = Turn::to_make(output, progress, || Ok(output.exists()))? else {
        return Ok(Dataset::open(output)?);
    };
    let downloaded = download(file, cache, &DownloadSettings::default(), progress)?;
    convert(&downloaded.path, output, &ReadOptions::default(), progress)
}

/// Refuses a file that others would not recognise as the memory-mapped form.
pub(crate) fn check_extension(output: &Path) -> Result<()> {
    if output.extension().is_some_and(|extension| extension == "cmdata") {
        return Ok(());
    }
    Err(Error::content(output, "the output must end in .cmdata"))
}

fn read(path: &Path, options: &ReadOptions, progress: Progress<'_>) -> Result<Dataset> {
    let _stage = Stage::busy(progress, &format!("reading {}", path.display()));
    Ok(cm_replay::read(path, options)?)
}
