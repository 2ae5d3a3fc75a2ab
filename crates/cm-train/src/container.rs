//! Files of one value: a name and a version, a checksum, and the value as bincode.

use std::path::Path;

use bincode::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result};

/// Bytes before the value: 8 of name and version, its length and its XXH3 checksum, 8 bytes each,
/// little endian.
pub(crate) const HEADER: usize = 24;

/// Writes the file at `path`, whole or not at all. The last byte of `magic` is the version.
pub(crate) fn save(path: &Path, magic: [u8; 8], value: &impl Encode) -> Result<()> {
    let payload = bincode::encode_to_vec(value, bincode::config::standard())
        .map_err(|error| Error::content(path, error.to_string()))?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&magic);
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&xxh3_64(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(cm_files::replace(path, bytes)?)
}

/// Reads the file at `path`, which should be `what`.
pub(crate) fn load<T: Decode<()>>(path: &Path, magic: [u8; 8], what: &str) -> Result<T> {
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    let refuse = |reason: String| Err(Error::content(path, reason));
    let Some((header, payload)) = bytes.split_at_checked(HEADER) else {
        return refuse(format!("expected a header of {HEADER} bytes, found {}", bytes.len()));
    };
    if header[..7] != magic[..7] {
        return refuse(format!("expected {what}, found something else"));
    }
    if header[7] != magic[7] {
        return refuse(format!("expected version {}, found {}", magic[7], header[7]));
    }
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
    if number(8) != payload.len() as u64 {
        return refuse(format!("expected {} bytes, found {}", number(8), payload.len()));
    }
    if number(16) != xxh3_64(payload) {
        return refuse("the checksum does not fit: the file is damaged".to_owned());
    }
    match bincode::decode_from_slice(payload, bincode::config::standard()) {
        Ok((value, used)) if used == payload.len() => Ok(value),
        Ok((_, used)) => refuse(format!("expected {} bytes, used {used}", payload.len())),
        Err(error) => refuse(error.to_string()),
    }
}
