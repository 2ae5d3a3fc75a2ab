//! SHA-256 of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::progress::Stage;
use crate::{Error, Progress, Result, Unit};

/// The checksum of a file in hexadecimal digits.
pub fn sha256_of_file(path: &Path, progress: Progress<'_>) -> Result<String> {
    let mut file = File::open(path).map_err(Error::file("read", path))?;
    let length = file.metadata().map_err(Error::file("read", path))?.len();
    let stage = Stage::begin(progress, "checking", Unit::Bytes, 0, Some(length));
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer).map_err(Error::file("read", path))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        stage.advance(count as u64);
    }
    Ok(hexadecimal(hasher))
}

/// The checksum of some bytes in hexadecimal digits.
///
/// ```
/// assert!(cm_data::sha256_of_bytes(b"abc").starts_with("ba7816bf"));
/// ```
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_checksum_of_abc() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of_file(file.path(), &crate::silent).unwrap(), expected);
        assert_eq!(sha256_of_bytes(b"abc"), expected);
    }
}
