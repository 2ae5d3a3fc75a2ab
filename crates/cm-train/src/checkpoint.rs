//! Where a run can go on from.

use std::io::Read;
use std::path::Path;

use bincode::{Decode, Encode};
use cm_nn::Snapshot;

use crate::container::{self, HEADER};
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
/// Bytes of the largest step as bincode writes it.
const LONGEST_STEP: usize = 9;

impl Checkpoint {
    /// Writes the file at `path`.
    pub fn save(&self, path: &Path) -> Result<()> {
        container::save(path, MAGIC, self)
    }

    /// The step of the file at `path`, from its first bytes: how far a run is, without reading all
    /// of it. Whether the rest is whole is for [`load`](Self::load) to say.
    pub fn read_step(path: &Path) -> Result<u64> {
        let mut start = Vec::new();
        let file = std::fs::File::open(path).map_err(Error::file(path))?;
        file.take((HEADER + LONGEST_STEP) as u64)
            .read_to_end(&mut start)
            .map_err(Error::file(path))?;
        let refuse =
            || Error::content(path, "expected a checkpoint of a run, found something else");
        let (header, payload) = start.split_at_checked(HEADER).ok_or_else(refuse)?;
        if header[..8] != MAGIC {
            return Err(refuse());
        }
        let (step, _) = bincode::decode_from_slice(payload, bincode::config::standard())
            .map_err(|_| refuse())?;
        Ok(step)
    }

    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self> {
        container::load(path, MAGIC, "a checkpoint of a run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_read_from_the_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.bin");
        for step in [0, 250, 251, 70_000, u64::from(u32::MAX) + 1, u64::MAX] {
            let (parameters, optimiser) = (Snapshot::default(), Snapshot::default());
            let lengths = [0; 3];
            Checkpoint { step, parameters, optimiser, best: None, lengths }.save(&path).unwrap();
            assert_eq!(Checkpoint::read_step(&path).unwrap(), step);
            assert_eq!(Checkpoint::load(&path).unwrap().step, step);
        }
        for bad in [&b""[..], b"cmcheck\x01", &[0; 60]] {
            std::fs::write(&path, bad).unwrap();
            let error = Checkpoint::read_step(&path).unwrap_err().to_string();
            assert!(error.contains("checkpoint.bin") && error.contains("expected"), "{error}");
        }
    }
}
