//! TensorBoard's event files: records of `Event` messages, of which scalars need but a few fields.
//!
//! A record is the length of its data (8 bytes), the masked CRC-32C of that, the data, the masked
//! CRC-32C of the data; little endian throughout.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::table::open_at;
use crate::{Error, Result};

/// An event file under construction.
pub(crate) struct Events {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Events {
    /// Opens the file at the length it had, cutting off what came later.
    pub(crate) fn open(path: &Path, length: u64) -> Result<Self> {
        let file = open_at(path, length)?;
        let mut events = Self { path: path.to_path_buf(), file, length };
        if length == 0 {
            let mut event = wall_time();
            string(&mut event, 3, "brain.Event:2");
            events.append(&event)?;
        }
        Ok(events)
    }

    /// Writes one scalar under each name.
    pub(crate) fn push(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let mut summary = Vec::new();
        for (name, value) in values {
            let mut scalar = Vec::new();
            string(&mut scalar, 1, name);
            tag(&mut scalar, 2, FIXED_32);
            scalar.extend_from_slice(&(*value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        let mut event = wall_time();
        tag(&mut event, 2, VARIABLE);
        variable(&mut event, step);
        bytes(&mut event, 5, &summary);
        self.append(&event)
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    fn append(&mut self, event: &[u8]) -> Result<()> {
        let record = record(event);
        self.file.write_all(&record).map_err(Error::file(&self.path))?;
        self.length += record.len() as u64;
        Ok(())
    }
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend_from_slice(&masked_checksum(&length).to_le_bytes());
    record.extend_from_slice(data);
    record.extend_from_slice(&masked_checksum(data).to_le_bytes());
    record
}

fn masked_checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

// Protocol buffers, as much of them as is needed.

const VARIABLE: u8 = 0;
const FIXED_64: u8 = 1;
const DELIMITED: u8 = 2;
const FIXED_32: u8 = 5;

/// The beginning of every event: field 1, when it was written.
fn wall_time() -> Vec<u8> {
    // A clock before 1970 is wrong, but no reason to lose a run.
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let mut event = Vec::new();
    tag(&mut event, 1, FIXED_64);
    event.extend_from_slice(&seconds.to_le_bytes());
    event
}

fn tag(message: &mut Vec<u8>, field: u8, kind: u8) {
    message.push(field << 3 | kind);
}

fn variable(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

fn bytes(message: &mut Vec<u8>, field: u8, content: &[u8]) {
    tag(message, field, DELIMITED);
    variable(message, content.len() as u64);
    message.extend_from_slice(content);
}

fn string(message: &mut Vec<u8>, field: u8, content: &str) {
    bytes(message, field, content.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that TensorBoard's own writer makes of `b"abc"`.
    #[test]
    fn records_are_framed_as_tensorboard_frames_them() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        let record = record(b"abc");
        assert_eq!(record[..8], 3_u64.to_le_bytes());
        assert_eq!(record[12..15], *b"abc");
        assert_eq!(record.len(), 19);
    }

    #[test]
    fn numbers_of_variable_length_are_those_of_protocol_buffers() {
        let encode = |number| {
            let mut message = Vec::new();
            variable(&mut message, number);
            message
        };
        assert_eq!(encode(1), [1]);
        assert_eq!(encode(300), [0xac, 0x02]);
        assert_eq!(encode(u64::MAX).len(), 10);
    }
}
