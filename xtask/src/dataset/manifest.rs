//! The manifests under `datasets/`: where a data set comes from and what it holds.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

/// One data set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) format: String,
    /// Width of an observation.
    pub(super) observations: usize,
    /// Width of an action.
    pub(super) actions: usize,
    /// How many rows there are, in words.
    pub(super) steps: Option<String>,
    pub(super) licence: String,
    pub(super) citation: String,
    pub(super) regenerate: String,
    pub(super) files: Vec<FileEntry>,
}

/// One of its files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEntry {
    pub(super) name: String,
    /// The source, then mirrors, in the order to try them.
    pub(super) addresses: Vec<String>,
    pub(super) size: Option<u64>,
    /// 64 hexadecimal digits, or [`RECORD`].
    pub(super) sha256: String,
}

/// What a manifest says of a checksum nobody has published.
pub(super) const RECORD: &str = "record on first download";

/// All manifests in order of name.
pub(super) fn all() -> anyhow::Result<Vec<Manifest>> {
    let folder = folder();
    let mut paths = std::fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("could not list {}", folder.display()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

/// The manifest of the data set called `name`.
pub(super) fn find(name: &str) -> anyhow::Result<Manifest> {
    let manifests = all()?;
    if let Some(manifest) = manifests.iter().find(|manifest| manifest.name == name) {
        return Ok(manifest.clone());
    }
    let names: Vec<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    bail!("no data set `{name}`; there are: {}", names.join(", "))
}

/// The workspace's `datasets/`.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("datasets")
}

fn load(path: &Path) -> anyhow::Result<Manifest> {
    let context = || format!("manifest {}", path.display());
    let text = std::fs::read_to_string(path).with_context(context)?;
    let manifest: Manifest = toml::from_str(&text).with_context(context)?;
    check(&manifest, path).with_context(context)?;
    Ok(manifest)
}

fn check(manifest: &Manifest, path: &Path) -> anyhow::Result<()> {
    if path.file_stem().is_none_or(|stem| stem != manifest.name.as_str()) {
        bail!("the name is `{}`, expected that of the file", manifest.name);
    }
    for file in &manifest.files {
        // The name becomes a path in the cache.
        if file.name.is_empty() || file.name.contains(['/', '\\']) || file.name.starts_with('.') {
            bail!("`{}` is no plain file name", file.name);
        }
        if file.addresses.is_empty() {
            bail!("`{}` has no address", file.name);
        }
        let hexadecimal =
            file.sha256.len() == 64 && file.sha256.bytes().all(|b| b.is_ascii_hexdigit());
        if !hexadecimal && file.sha256 != RECORD {
            bail!(
                "sha256 of `{}` is `{}`, expected 64 hexadecimal digits or \"{RECORD}\"",
                file.name,
                file.sha256
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_is_valid_and_the_promised_ones_are_there() {
        let names: Vec<String> = all().unwrap().into_iter().map(|manifest| manifest.name).collect();
        for maze in [
            "umaze",
            "umaze-diverse",
            "medium-play",
            "medium-diverse",
            "large-play",
            "large-diverse",
        ] {
            assert!(names.contains(&format!("antmaze-{maze}-v2")), "{maze}");
        }
        for agent in ["pointmaze", "antmaze"] {
            for maze in ["medium", "large", "giant", "teleport"] {
                for kind in ["navigate", "stitch"] {
                    assert!(names.contains(&format!("{agent}-{maze}-{kind}-v0")));
                }
            }
        }
        let message = find("antmaze-tiny-v2").unwrap_err().to_string();
        assert!(message.contains("`antmaze-tiny-v2`") && message.contains("antmaze-umaze-v2"));
    }

    #[test]
    fn mistakes_in_a_manifest_are_named() {
        let good = std::fs::read_to_string(folder().join("antmaze-umaze-v2.toml")).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("antmaze-umaze-v2.toml");
        for (from, to, expected) in [
            ("licence =", "license =", "license"),
            ("actions = 8", "actions = \"8\"", "invalid type"),
            ("name = \"Ant", "name = \"../Ant", "no plain file name"),
            ("record on first download", "abc", "64 hexadecimal digits"),
            ("name = \"antmaze-umaze-v2\"", "name = \"other\"", "expected that of the file"),
        ] {
            assert!(good.contains(from), "{from}");
            std::fs::write(&path, good.replace(from, to)).unwrap();
            let message = format!("{:#}", load(&path).unwrap_err());
            assert!(
                message.contains(expected) && message.contains("antmaze-umaze-v2.toml"),
                "{message}"
            );
        }
    }
}
