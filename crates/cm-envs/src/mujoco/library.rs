//! The loaded library.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use libloading::Library;

use super::api::{Api, symbol};
use super::handlers::{self, Failure};
use super::locate;
use crate::Error;

/// The version that `cm mujoco install` gets and that the figures of this project are measured
/// with.
pub const VERSION: Version = Version([3, 17, 0]);

/// The oldest version with every function that is used here.
pub const OLDEST: Version = Version([3, 2, 0]);

/// MuJoCo, loaded. Clones share it.
#[derive(Clone)]
pub struct Mujoco {
    pub(super) api: Arc<Api>,
    version: Version,
}

/// A version of MuJoCo.
///
/// ```
/// use cm_envs::mujoco::{OLDEST, VERSION, Version};
///
/// assert_eq!(VERSION.to_string(), "3.17.0");
/// assert!(OLDEST < VERSION);
/// // `mj_version` has two ways to put a version into one number.
/// assert_eq!(Version::from_number(237).to_string(), "2.3.7");
/// assert_eq!(Version::from_number(3_017_000), VERSION);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl Version {
    /// The version that `mj_version` gives as one number: a digit for each part, or three digits
    /// each since one did not suffice.
    pub const fn from_number(number: u32) -> Self {
        if number < 1_000_000 {
            Self([number / 100, number / 10 % 10, number % 10])
        } else {
            Self([number / 1_000_000, number / 1000 % 1000, number % 1000])
        }
    }

    /// `Ok` for versions that can be used.
    pub(super) fn check(self) -> Result<(), String> {
        if self >= OLDEST {
            return Ok(());
        }
        Err(format!("MuJoCo {self} is too old: expected {OLDEST} or later (made for {VERSION})"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

impl Mujoco {
    /// Finds and loads the library (see the [module](super) for where it is looked for).
    pub fn find() -> Result<Self, Error> {
        if let Some(path) = locate::named_library() {
            return Self::load(path);
        }
        let installed = locate::installed_library();
        if installed.exists() {
            return Self::load(installed);
        }
        for name in locate::system_names() {
            // SAFETY: as in `load`.
            if let Ok(library) = unsafe { Library::new(&name) } {
                return Self::from_library(library, name.as_ref());
            }
        }
        Err(Error::SimulatorMissing { looked_at: installed })
    }

    /// Loads the library from the file at `path`.
    ///
    /// Loading runs the initialisation of the file, whatever it is; one that is not MuJoCo is
    /// noticed only then. MuJoCo's handlers of errors and warnings are replaced for the whole
    /// process.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        // A name without a folder would be searched for elsewhere.
        let file = path.canonicalize().map_err(|cause| Error::File { path: path.into(), cause })?;
        // SAFETY: a library's initialisers run now. Nothing can be said of those of a file that is
        // not MuJoCo, as the documentation warns; those of MuJoCo and of what it links to have no
        // requirements.
        let library = unsafe { Library::new(&file) }
            .map_err(|error| unusable(path.as_os_str(), error.to_string()))?;
        Self::from_library(library, path.as_os_str())
    }

    /// The version of the library.
    pub fn version(&self) -> Version {
        self.version
    }

    fn from_library(library: Library, name: &OsStr) -> Result<Self, Error> {
        let version = version_of(&library).map_err(|reason| unusable(name, reason))?;
        version.check().map_err(|reason| unusable(name, reason))?;
        let missing = |reason| unusable(name, format!("not MuJoCo {version}: {reason}"));
        // SAFETY: the library calls itself MuJoCo and is of a version with these functions and
        // variables.
        let api = unsafe {
            handlers::install(&library).map_err(missing)?;
            Api::new(library).map_err(missing)?
        };
        Ok(Self { api: Arc::new(api), version })
    }
}

impl fmt::Debug for Mujoco {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mujoco({})", self.version)
    }
}

/// Asks the library for its version twice, as a number and in words, since any library might have a
/// function of one of these names.
fn version_of(library: &Library) -> Result<Version, String> {
    let not_mujoco = |reason| format!("not MuJoCo: {reason}");
    // SAFETY: both functions of MuJoCo take nothing; a library that has both without being MuJoCo
    // would have to be made for it.
    let (number, words) = unsafe {
        let number: unsafe extern "C" fn() -> c_int =
            symbol(library, "mj_version").map_err(not_mujoco)?;
        let words: unsafe extern "C" fn() -> *const c_char =
            symbol(library, "mj_versionString").map_err(not_mujoco)?;
        let words = words();
        (number(), if words.is_null() { None } else { Some(CStr::from_ptr(words)) })
    };
    let version = u32::try_from(number).map(Version::from_number).ok();
    let words = words.map_or_else(String::new, |words| words.to_string_lossy().into_owned());
    match version {
        Some(version) if version.to_string() == words => Ok(version),
        _ => Err(format!("not MuJoCo: its version is {number} as a number and `{words}` in words")),
    }
}

fn unusable(path: &OsStr, reason: String) -> Error {
    Error::SimulatorLibrary { path: path.into(), reason }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let (Failure::Fatal(reason) | Failure::Warning(reason)) = failure;
        Self::Simulator { reason }
    }
}
