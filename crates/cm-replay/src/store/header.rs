//! The preamble and the header: everything bincode touches.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use xxhash_rust::xxh3::xxh3_64;

use super::FORMAT;
use crate::{Error, Result};

pub(super) const VERSION: u32 = 1;
pub(super) const PREAMBLE_BYTES: usize = 64;
/// Arrays start at multiples of this: a cache line, and more than any number needs.
pub(super) const ALIGNMENT: u64 = 64;

const MAGIC: [u8; 8] = *b"CMREPLAY";
/// Bytes of the preamble its own checksum covers.
const CHECKED: usize = 48;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Preamble {
    pub(super) header_offset: u64,
    pub(super) header_length: u64,
    pub(super) header_checksum: u64,
    pub(super) file_length: u64,
}

impl Preamble {
    pub(super) fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let fields =
            [self.header_offset, self.header_length, self.header_checksum, self.file_length];
        for (field, place) in fields.into_iter().zip(bytes[16..CHECKED].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let checksum = xxh3_64(&bytes[..CHECKED]);
        bytes[CHECKED..CHECKED + 8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Result<Self> {
        if bytes[..8] != MAGIC {
            let reason = format!("it starts with {:02x?}, expected {MAGIC:02x?}", &bytes[..8]);
            return Err(Error::format(FORMAT, reason));
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|offset| bytes[at + offset]));
        let version = word(8) as u32;
        if version != VERSION {
            return Err(Error::Version { expected: VERSION, found: version });
        }
        let (expected, found) = (word(CHECKED), xxh3_64(&bytes[..CHECKED]));
        if expected != found {
            return Err(Error::Checksum { part: "the preamble".to_owned(), expected, found });
        }
        Ok(Self {
            header_offset: word(16),
            header_length: word(24),
            header_checksum: word(32),
            file_length: word(40),
        })
    }
}

#[derive(Clone, Debug, PartialEq, bincode::Encode, bincode::Decode)]
pub(super) struct Header {
    /// Rows of every array.
    pub(super) steps: u64,
    pub(super) trajectories: u64,
    pub(super) ends_offset: u64,
    pub(super) ends_checksum: u64,
    /// Observations, actions, then the extras.
    pub(super) arrays: Vec<ArrayHeader>,
}

#[derive(Clone, Debug, PartialEq, bincode::Encode, bincode::Decode)]
pub(super) struct ArrayHeader {
    pub(super) name: String,
    pub(super) columns: u64,
    pub(super) offset: u64,
    pub(super) checksum: u64,
}

impl Header {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        bincode::encode_to_vec(self, configuration())
            .map_err(|error| Error::format(FORMAT, format!("header: {error}")))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let (header, used) = bincode::decode_from_slice(bytes, configuration())
            .map_err(|error| Error::format(FORMAT, format!("header: {error}")))?;
        if used != bytes.len() {
            let reason = format!("the header has {} bytes, {used} used", bytes.len());
            return Err(Error::format(FORMAT, reason));
        }
        Ok(header)
    }

    /// Checks that every array starts where it may and ends before `limit`.
    pub(super) fn check_arrays(&self, limit: u64) -> Result<()> {
        let parts = self
            .arrays
            .iter()
            .map(|array| (array.name.as_str(), array.offset, array.checked_bytes(self.steps)));
        let ends = ("trajectory ends", self.ends_offset, self.trajectories.checked_mul(8));
        for (name, offset, bytes) in parts.chain([ends]) {
            let end = bytes.and_then(|bytes| offset.checked_add(bytes));
            if !offset.is_multiple_of(ALIGNMENT) || end.is_none_or(|end| end > limit) {
                let reason = format!(
                    "array `{name}` at byte {offset} with {bytes:?} bytes does not fit before {limit}"
                );
                return Err(Error::format(FORMAT, reason));
            }
        }
        Ok(())
    }
}

impl ArrayHeader {
    /// The array's size once [`Header::check_arrays`] has passed.
    pub(super) fn bytes(&self, steps: u64) -> u64 {
        steps * self.columns * size_of::<f32>() as u64
    }

    fn checked_bytes(&self, steps: u64) -> Option<u64> {
        steps.checked_mul(self.columns)?.checked_mul(size_of::<f32>() as u64)
    }
}

/// Names and offsets of a few arrays: a header that wants more memory than this is a lie.
const HEADER_LIMIT: usize = 1 << 20;

fn configuration() -> Configuration<LittleEndian, Varint, Limit<HEADER_LIMIT>> {
    bincode::config::standard().with_limit::<HEADER_LIMIT>()
}
