//! The manifests: where a data set comes from and what it holds.

use std::path::Path;

use serde::Deserialize;

use crate::{Cache, Error, Result};

/// One data set.
///
/// ```
/// use cm_data::{Cache, Manifest};
///
/// let manifest = Manifest::find("antmaze-umaze-v2", &Cache::new("/data"))?;
/// assert_eq!((manifest.observations, manifest.actions), (29, 8));
/// # Ok::<(), cm_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What it is called.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// The layout of its files.
    pub format: String,
    /// Width of an observation.
    pub observations: usize,
    /// Width of an action.
    pub actions: usize,
    /// How many rows there are, in words.
    pub steps: Option<String>,
    /// Under which terms the data is published.
    pub licence: String,
    /// What to cite.
    pub citation: String,
    /// How equivalent data can be made.
    pub regenerate: String,
    /// Its files.
    pub files: Vec<FileEntry>,
}

/// One of a data set's files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name in the cache.
    pub name: String,
    /// The source, then mirrors, in the order to try them.
    pub addresses: Vec<String>,
    /// Its length in bytes, where that is published.
    pub size: Option<u64>,
    /// 64 hexadecimal digits, or the words that nobody has published them
    /// ([`Cache::checksum`] tells which).
    pub sha256: String,
}

/// What a manifest says of a checksum nobody has published.
pub(crate) const RECORD: &str = "not published: recorded at the first download";

/// The manifests that come with this crate, so that an installed program has them.
macro_rules! embedded {
    ($($name:literal,)*) => {
        const EMBEDDED: &[(&str, &str)] = &[$((
            concat!($name, ".toml"),
            include_str!(concat!("../manifests/", $name, ".toml")),
        ),)*];
    };
}

embedded! {
    "antmaze-giant-navigate-v0",
    "antmaze-giant-stitch-v0",
    "antmaze-large-diverse-v2",
    "antmaze-large-explore-v0",
    "antmaze-large-navigate-v0",
    "antmaze-large-play-v2",
    "antmaze-large-stitch-v0",
    "antmaze-medium-diverse-v2",
    "antmaze-medium-explore-v0",
    "antmaze-medium-navigate-v0",
    "antmaze-medium-play-v2",
    "antmaze-medium-stitch-v0",
    "antmaze-teleport-explore-v0",
    "antmaze-teleport-navigate-v0",
    "antmaze-teleport-stitch-v0",
    "antmaze-umaze-diverse-v2",
    "antmaze-umaze-v2",
    "pointmaze-giant-navigate-v0",
    "pointmaze-giant-stitch-v0",
    "pointmaze-large-navigate-v0",
    "pointmaze-large-stitch-v0",
    "pointmaze-medium-navigate-v0",
    "pointmaze-medium-stitch-v0",
    "pointmaze-teleport-navigate-v0",
    "pointmaze-teleport-stitch-v0",
}

impl Manifest {
    /// All manifests in order of name: those that come with this crate, and the `*.toml` that
    /// people have put into the folder `manifests` of the cache.
    pub fn all(cache: &Cache) -> Result<Vec<Self>> {
        let mut all = EMBEDDED
            .iter()
            .map(|(file, text)| parse(text, Path::new(file)))
            .collect::<Result<Vec<_>>>()?;
        for path in own_files(&cache.manifests())? {
            let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
            let manifest = parse(&text, &path)?;
            if all.iter().any(|other| other.name == manifest.name) {
                let reason = format!("there is already a data set `{}`", manifest.name);
                return Err(Error::content(&path, reason));
            }
            all.push(manifest);
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The manifest of the data set called `name`.
    pub fn find(name: &str, cache: &Cache) -> Result<Self> {
        let mut manifests = Self::all(cache)?;
        match manifests.iter().position(|manifest| manifest.name == name) {
            Some(index) => Ok(manifests.swap_remove(index)),
            None => Err(Error::UnknownDataset {
                name: name.to_owned(),
                known: manifests.into_iter().map(|manifest| manifest.name).collect(),
            }),
        }
    }

    /// Whether every file is in the cache.
    pub fn is_downloaded(&self, cache: &Cache) -> bool {
        self.files.iter().all(|file| cache.path(&file.name).exists())
    }
}

/// The manifests in a folder that need not be there, in order.
fn own_files(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::file("list", folder))?,
    };
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(Error::file("list", folder))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

fn parse(text: &str, path: &Path) -> Result<Manifest> {
    let refused = |reason: String| Error::content(path, format!("not a manifest: {reason}"));
    let manifest: Manifest = toml::from_str(text).map_err(|error| refused(error.to_string()))?;
    check(&manifest, path).map_err(refused)?;
    Ok(manifest)
}

fn check(manifest: &Manifest, path: &Path) -> Result<(), String> {
    if path.file_stem().is_none_or(|stem| stem != manifest.name.as_str()) {
        return Err(format!("the name is `{}`, expected that of the file", manifest.name));
    }
    for file in &manifest.files {
        // The name becomes a path in the cache.
        if file.name.is_empty() || file.name.contains(['/', '\\']) || file.name.starts_with('.') {
            return Err(format!("`{}` is no plain file name", file.name));
        }
        if file.addresses.is_empty() {
            return Err(format!("`{}` has no address", file.name));
        }
        let hexadecimal =
            file.sha256.len() == 64 && file.sha256.bytes().all(|b| b.is_ascii_hexdigit());
        if !hexadecimal && file.sha256 != RECORD {
            return Err(format!(
                "sha256 of `{}` is `{}`, expected 64 hexadecimal digits or \"{RECORD}\"",
                file.name, file.sha256
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        std::fs::create_dir_all(cache.manifests()).unwrap();
        (folder, cache)
    }

    #[test]
    fn every_manifest_is_embedded_and_the_promised_ones_are_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
        let files = own_files(&folder).unwrap();
        let mut names: Vec<_> =
            files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        names.sort_unstable();
        let mut embedded: Vec<_> = EMBEDDED.iter().map(|(file, _)| *file).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, names, "the list in this file, and the folder manifests");

        let manifests = Manifest::all(&scratch().1).unwrap();
        let find = |name: &str| manifests.iter().find(|manifest| manifest.name == name).unwrap();
        for (maze, size, digits) in [
            ("umaze", 232_532_949, "5ef15257"),
            ("umaze-diverse", 230_854_272, "c771dd63"),
            ("medium-play", 231_110_764, "c9fec1c1"),
            ("medium-diverse", 231_095_166, "ad9dcbac"),
            ("large-play", 230_880_653, "6d353df2"),
            ("large-diverse", 231_183_710, "84f775eb"),
        ] {
            let file = &find(&format!("antmaze-{maze}-v2")).files[0];
            assert_eq!(file.size, Some(size), "{maze}");
            assert!(file.sha256.starts_with(digits), "{maze}");
        }
        for agent in ["pointmaze", "antmaze"] {
            for maze in ["medium", "large", "giant", "teleport"] {
                for kind in ["navigate", "stitch"] {
                    let files = &find(&format!("{agent}-{maze}-{kind}-v0")).files;
                    assert!(files.len() == 2 && files.iter().all(|file| file.sha256 == RECORD));
                }
            }
        }
    }

    #[test]
    fn a_name_that_is_not_there_gets_those_that_are() {
        let error = Manifest::find("antmaze-tiny-v2", &scratch().1).unwrap_err().to_string();
        assert!(error.contains("`antmaze-tiny-v2`") && error.contains("antmaze-umaze-v2"));
    }

    #[test]
    fn people_have_manifests_of_their_own() {
        let (_, text) = EMBEDDED.iter().find(|(file, _)| *file == "antmaze-umaze-v2.toml").unwrap();
        let (_folder, cache) = scratch();
        let own = text.replace("name = \"antmaze-umaze-v2\"", "name = \"walks\"");
        std::fs::write(cache.manifests().join("walks.toml"), own).unwrap();
        assert_eq!(Manifest::find("walks", &cache).unwrap().actions, 8);
        std::fs::write(cache.manifests().join("antmaze-umaze-v2.toml"), text).unwrap();
        let message = Manifest::all(&cache).unwrap_err().to_string();
        assert!(message.contains("already a data set `antmaze-umaze-v2`"), "{message}");
    }

    #[test]
    fn mistakes_in_a_manifest_are_named() {
        let (_, good) = EMBEDDED.iter().find(|(file, _)| *file == "antmaze-umaze-v2.toml").unwrap();
        let good = good.replace("name = \"antmaze-umaze-v2\"", "name = \"walks\"");
        let (_folder, cache) = scratch();
        let path = cache.manifests().join("walks.toml");
        for (from, to, expected) in [
            ("licence =", "license =", "license"),
            ("actions = 8", "actions = \"8\"", "invalid type"),
            ("name = \"Ant", "name = \"../Ant", "no plain file name"),
            ("sha256 = \"5ef", "sha256 = \"xyz", "64 hexadecimal digits"),
            ("name = \"walks\"", "name = \"other\"", "expected that of the file"),
        ] {
            assert!(good.contains(from), "{from}");
            std::fs::write(&path, good.replace(from, to)).unwrap();
            let message = Manifest::all(&cache).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("walks.toml"), "{message}");
        }
    }
}
