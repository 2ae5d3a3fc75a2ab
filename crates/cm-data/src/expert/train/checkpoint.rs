//! A training cut off and gone on with.

use std::path::Path;

use bincode::{Decode, Encode};
use cm_nn::Snapshot;

use super::course::Course;
use super::inputs::Inputs;
use crate::{Error, Result};

/// Everything a training needs to go on exactly as if it had never stopped.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Checkpoint {
    /// What the training was started with; another is not gone on with.
    pub(super) plan: String,
    pub(super) iteration: u64,
    pub(super) learning_rate: f32,
    pub(super) expert: Snapshot,
    pub(super) optimiser: Snapshot,
    pub(super) inputs: Inputs,
    pub(super) courses: Vec<Course>,
}

/// The first bytes of the file: what it is, and which version.
const MAGIC: &[u8; 8] = b"CMEXPRT1";

impl Checkpoint {
    /// The checkpoint at `path`, if there is one.
    pub(super) fn load(path: &Path) -> Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(Error::file("read", path))?,
        };
        let damaged = || Error::content(path, "not a checkpoint of an expert, or damaged");
        let (magic, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let (length, body) = rest.split_first_chunk().ok_or_else(damaged)?;
        if magic != MAGIC || u64::from_le_bytes(*length) != body.len() as u64 {
            return Err(damaged());
        }
        match bincode::decode_from_slice(body, bincode::config::standard()) {
            Ok((checkpoint, read)) if read == body.len() => Ok(Some(checkpoint)),
            _ => Err(damaged()),
        }
    }

    /// Replaces the file at `path`, whole or not at all.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let body = bincode::encode_to_vec(self, bincode::config::standard())
            .map_err(|error| Error::content(path, error))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        Ok(cm_files::replace(path, bytes)?)
    }
}
