//! The one error type of this crate.

use std::path::{Path, PathBuf};

/// What can go wrong with a data set, a download, a generation or an expert.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network or an optimiser refused something.
    #[error(transparent)]
    Network(#[from] cm_nn::Error),
    /// A data set could not be read or written.
    #[error(transparent)]
    Data(#[from] cm_replay::Error),
    /// An environment or the simulator refused something.
    #[error(transparent)]
    Environment(#[from] cm_envs::Error),
    /// A file could not be replaced.
    #[error(transparent)]
    Write(#[from] cm_files::Error),
    /// An episode of a generated data set failed.
    #[error("episode {number}: {cause}")]
    Episode {
        /// The episode, from 0 on.
        number: usize,
        /// What went wrong in it.
        cause: cm_envs::Error,
    },
    /// The system refused an operation on a file or folder.
    #[error("{}: could not {operation}: {cause}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted.
        operation: &'static str,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// A file's content is not what it should be.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The key or place, the expected and the found.
        reason: String,
    },
    /// A setting is outside its range.
    #[error("{setting}: expected {expected}, found {found}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// Its range.
        expected: String,
        /// What was given.
        found: String,
    },
    /// No manifest has that name.
    #[error("no data set `{name}`; there are: {}", known.join(", "))]
    UnknownDataset {
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No address of a file gave it.
    #[error(
        "{}\n{}",
        if *network_down {
            format!("could not reach any server for {name}: the network seems to be down")
        } else {
            format!("could not download {name}")
        },
        failures.join("\n")
    )]
    Download {
        /// The file.
        name: String,
        /// Whether no server answered at all.
        network_down: bool,
        /// Each address, and why it did not give the file.
        failures: Vec<String>,
    },
    /// A file of a data set is not in the cache.
    #[error("{} is not there; run `cm data download {dataset}`", path.display())]
    NotDownloaded {
        /// Where it would be.
        path: PathBuf,
        /// The data set it belongs to.
        dataset: String,
    },
    /// A file is not the one that was meant.
    #[error("{}: sha256 is {found}, expected {expected}", path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum it should have.
        expected: String,
        /// The checksum it has.
        found: String,
    },
    /// Nobody has published a checksum of a file, and no download has recorded one.
    #[error(
        "{}: no checksum is known for it; download it again to record one",
        path.display()
    )]
    NoChecksum {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder holds data generated with other settings.
    #[error(
        "{} {holds} other settings ({}); delete it, or write to another file",
        path.display(), names.join(", ")
    )]
    OtherSettings {
        /// The file or folder.
        path: PathBuf,
        /// How it came about: `was generated with` or `holds unfinished data of`.
        holds: &'static str,
        /// The settings that differ.
        names: Vec<String>,
    },
    /// A file holds data of another recipe, task or walking policy than is asked for.
    #[error(
        "{} holds data of {what} `{found}`, expected `{expected}`; delete it, choose another \
         folder, or ask for that {what}",
        path.display()
    )]
    OtherData {
        /// The file.
        path: PathBuf,
        /// `recipe`, `task` or `walking policy`.
        what: &'static str,
        /// Its name, or the checksum of its file, as it is asked for.
        expected: String,
        /// The same as it is described.
        found: String,
    },
    /// A folder holds the training of an expert with other settings.
    #[error(
        "{} holds a training of {found}, expected {expected}; choose another folder",
        path.display()
    )]
    OtherTraining {
        /// The folder.
        path: PathBuf,
        /// What the training is asked to be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// MuJoCo's library could not be brought here.
    #[error("{0}")]
    Install(String),
    /// No threads could be started.
    #[error("could not start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::File`] about `path`, for `map_err`.
    pub(crate) fn file<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |cause| Self::File { path: path.to_path_buf(), operation, cause }
    }

    /// An [`Error::Content`] about `path`.
    pub(crate) fn content(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Content { path: path.to_path_buf(), reason: reason.to_string() }
    }
}
