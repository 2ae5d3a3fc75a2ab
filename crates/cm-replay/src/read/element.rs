//! Numbers of any common type, as bytes, to f32.

use crate::{Error, Result};

/// Numbers to convert at a time.
pub(super) const PIECE: usize = 1 << 16;

/// An element type, and whether its bytes are in big-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    kind: Kind,
    size: usize,
    big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Boolean,
}

impl Element {
    /// The type NumPy calls `descr`, such as `<f4`.
    pub(super) fn parse(name: &str, descr: &str) -> Result<Self> {
        let unknown = || Error::ElementType {
            key: name.to_owned(),
            expected: "f4, f8, i1 to i8, u1 to u8 or b1",
            found: format!("`{descr}`"),
        };
        let (order, kind) = descr.split_at_checked(1).ok_or_else(unknown)?;
        let (kind, size) = kind.split_at_checked(1).ok_or_else(unknown)?;
        let big_endian = match order {
            "<" | "|" | "=" => false,
            ">" => true,
            _ => return Err(unknown()),
        };
        let (kind, size) = match (kind, size) {
            ("f", "4" | "8") => (Kind::Float, size),
            ("i", "1" | "2" | "4" | "8") => (Kind::Signed, size),
            ("u", "1" | "2" | "4" | "8") => (Kind::Unsigned, size),
            ("b", "1") => (Kind::Boolean, size),
            _ => return Err(unknown()),
        };
        Ok(Self { kind, size: size.parse().map_err(|_| unknown())?, big_endian })
    }

    /// Bytes of one element.
    pub(super) fn size(self) -> usize {
        self.size
    }

    /// Replaces `numbers` by those that `bytes` hold, each the nearest f32.
    pub(super) fn decode(self, bytes: &[u8], numbers: &mut Vec<f32>) {
        numbers.clear();
        let elements = bytes.chunks_exact(self.size);
        match (self.kind, self.big_endian) {
            // By far the most common, and worth a loop that is a plain copy.
            (Kind::Float, false) if self.size == 4 => numbers.extend(
                elements.map(|bytes| f32::from_le_bytes(std::array::from_fn(|at| bytes[at]))),
            ),
            _ => numbers.extend(elements.map(|bytes| self.to_f32(bytes))),
        }
    }

    /// The nearest f32 to an element's bytes.
    #[inline]
    fn to_f32(self, bytes: &[u8]) -> f32 {
        let bits = self.bits(bytes);
        match (self.kind, self.size) {
            (Kind::Float, 4) => f32::from_bits(bits as u32),
            (Kind::Float, _) => f64::from_bits(bits) as f32,
            (Kind::Signed, size) => sign_extend(bits, size) as f32,
            (Kind::Unsigned, _) => bits as f32,
            (Kind::Boolean, _) => f32::from(u8::from(bits != 0)),
        }
    }

    /// Integer elements, none of which may be negative.
    pub(super) fn to_integers(self, name: &str, bytes: &[u8]) -> Result<Vec<u64>> {
        let wrong = |found: String| {
            let expected = "integers that are not negative";
            Error::ElementType { key: name.to_owned(), expected, found }
        };
        let integer = |bytes: &[u8]| match self.kind {
            Kind::Unsigned => Ok(self.bits(bytes)),
            _ => {
                let signed = sign_extend(self.bits(bytes), self.size);
                u64::try_from(signed).map_err(|_| wrong(format!("an integer array with {signed}")))
            }
        };
        match self.kind {
            Kind::Signed | Kind::Unsigned => bytes.chunks_exact(self.size).map(integer).collect(),
            Kind::Float | Kind::Boolean => Err(wrong(format!("{:?}", self.kind).to_lowercase())),
        }
    }

    #[inline]
    fn bits(self, bytes: &[u8]) -> u64 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        if self.big_endian {
            wide[..bytes.len()].reverse();
        }
        u64::from_le_bytes(wide)
    }
}

fn sign_extend(bits: u64, size: usize) -> i64 {
    let unused = 64 - 8 * size as u32;
    (bits << unused) as i64 >> unused
}
