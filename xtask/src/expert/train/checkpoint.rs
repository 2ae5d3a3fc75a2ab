//! A training cut off and gone on with.

use std::path::Path;

use anyhow::{Context, ensure};
use bincode::{Decode, Encode};
use cm_nn::Snapshot;

use super::course::Course;
use super::inputs::Inputs;

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
    pub(super) fn load(path: &Path) -> anyhow::Result<Option<Self>> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.with_context(|| format!("could not read {}", path.display()))?,
        };
        let damaged = || format!("{} is not a checkpoint of an expert, or damaged", path.display());
        let (head, body) = bytes.split_at_checked(MAGIC.len() + 8).with_context(damaged)?;
        let (magic, length) = head.split_at(MAGIC.len());
        let length = u64::from_le_bytes(length.try_into()?);
        ensure!(magic == MAGIC && length == body.len() as u64, damaged());
        let (checkpoint, read) =
            bincode::decode_from_slice(body, bincode::config::standard()).with_context(damaged)?;
        ensure!(read == body.len(), damaged());
        Ok(Some(checkpoint))
    }

    /// Replaces the file at `path`, whole or not at all.
    pub(super) fn save(&self, path: &Path) -> anyhow::Result<()> {
        let body = bincode::encode_to_vec(self, bincode::config::standard())?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        Ok(cm_files::replace(path, bytes)?)
    }
}
