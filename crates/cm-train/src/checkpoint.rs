//! Where a run can go on from.

use std::path::Path;

use bincode::{Decode, Encode};
use cm_nn::Snapshot;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result};

/// A run at one moment: everything that training changes.
///
/// In the file the encoding (bincode, standard configuration) follows 8 bytes of name and version,
/// its length and its XXH3 checksum, 8 bytes each, little endian. The file is replaced whole or not
/// at all (see [`cm_files`]).
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Checkpoint {
    /// Steps done.
    pub step: u64,
    /// Every parameter of the learner.
    pub parameters: Snapshot,
    /// Every optimiser's state.
    pub optimiser: Snapshot,
    /// The best evaluation so far: after which step, and its success rate.
    pub best: Option<(u64, f64)>,
    /// How long each of the run's growing files was: the losses, the evaluations, the events.
    pub(crate) lengths: [u64; 3],
}

/// `cmcheck` and the version.
const MAGIC: [u8; 8] = *b"cmcheck\x01";
const HEADER: usize = 24;

impl Checkpoint {
    /// Writes the file at `path`.
    pub fn save(&self, path: &Path) -> Result<()> {
        let config = bincode::config::standard();
        let payload = bincode::encode_to_vec(self, config)
            .map_err(|error| Error::content(path, error.to_string()))?;
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        Ok(cm_files::replace(path, bytes)?)
    }

    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        let refuse = |reason: String| Err(Error::content(path, reason));
        let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
            return refuse(format!("expected a header of {HEADER} bytes, found {}", bytes.len()));
        };
        if header[..7] != MAGIC[..7] {
            return refuse("expected a checkpoint of a run, found something else".to_owned());
        }
        if header[7] != MAGIC[7] {
            return refuse(format!("expected version {}, found {}", MAGIC[7], header[7]));
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        if number(8) != payload.len() as u64 {
            return refuse(format!("expected {} bytes, found {}", number(8), payload.len()));
        }
        if number(16) != xxh3_64(payload) {
            return refuse("the checksum does not fit: the file is damaged".to_owned());
        }
        let config = bincode::config::standard();
        match bincode::decode_from_slice(payload, config) {
            Ok((checkpoint, used)) if used == payload.len() => Ok(checkpoint),
            Ok((_, used)) => refuse(format!("expected {} bytes, used {used}", payload.len())),
            Err(error) => refuse(error.to_string()),
        }
    }
}
