//! The NumPy array format `.npy`: a short text header, then the numbers.

use std::io::{ErrorKind, Read};

use super::element::{Element, PIECE};
use crate::{Error, Matrix, Result};

const FORMAT: &str = "NumPy";
/// NumPy's own headers have about a hundred bytes.
const LARGEST_HEADER: usize = 1 << 16;

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    pub(super) element: Element,
    pub(super) shape: Vec<usize>,
    fortran: bool,
    /// Bytes the header itself takes.
    pub(super) length: u64,
}

impl NpyHeader {
    pub(super) fn read(name: &str, source: &mut impl Read) -> Result<Self> {
        let mut start = [0; 10];
        read_exactly(name, source, &mut start)?;
        if start[..6] != *b"\x93NUMPY" {
            let reason = format!("array `{name}` starts with {:02x?}", &start[..6]);
            return Err(Error::format(FORMAT, reason));
        }
        let (text_length, length) = match start[6] {
            1 => (u32::from(u16::from_le_bytes([start[8], start[9]])), 10),
            2 | 3 => {
                let mut more = [0; 2];
                read_exactly(name, source, &mut more)?;
                (u32::from_le_bytes([start[8], start[9], more[0], more[1]]), 12)
            }
            version => {
                let reason = format!("array `{name}` has npy version {version}, expected 1 to 3");
                return Err(Error::format(FORMAT, reason));
            }
        };
        if text_length as usize > LARGEST_HEADER {
            let reason = format!("array `{name}` claims a header of {text_length} bytes");
            return Err(Error::format(FORMAT, reason));
        }
        let mut text = vec![0; text_length as usize];
        read_exactly(name, source, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        Self::parse(name, &text, length + u64::from(text_length))
    }

    /// Parses the Python dictionary NumPy writes:
    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`.
    fn parse(name: &str, text: &str, length: u64) -> Result<Self> {
        let invalid = |what: &str| {
            Error::format(FORMAT, format!("array `{name}`: no {what} in the header {text:?}"))
        };
        let after = |key: &str| {
            let (_, rest) = text.split_once(key)?;
            Some(rest.trim_start_matches(['\'', '"']).trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = after("'descr").and_then(|rest| {
            let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
            rest[1..].split(quote).next()
        });
        let descr = descr.ok_or_else(|| invalid("plain `descr`"))?;
        let order = after("'fortran_order").ok_or_else(|| invalid("`fortran_order`"))?;
        let fortran = match (order.starts_with("True"), order.starts_with("False")) {
            (true, false) => true,
            (false, true) => false,
            _ => return Err(invalid("valid `fortran_order`")),
        };
        let shape = after("'shape")
            .and_then(|rest| rest.strip_prefix('(')?.split(')').next())
            .and_then(|inside| {
                let numbers = inside.split(',').map(str::trim).filter(|number| !number.is_empty());
                numbers.map(|number| number.trim_end_matches('L').parse().ok()).collect()
            })
            .ok_or_else(|| invalid("valid `shape`"))?;
        Ok(Self { element: Element::parse(name, descr)?, shape, fortran, length })
    }

    /// Bytes of the numbers; wide enough for any lie.
    pub(super) fn data_bytes(&self) -> u128 {
        self.shape
            .iter()
            .try_fold(self.element.size() as u128, |bytes, &size| bytes.checked_mul(size as u128))
            .unwrap_or(u128::MAX)
    }

    /// Reads the numbers as `[N, product of the others]`, some at a time. The size must have been
    /// found plausible before.
    pub(super) fn read_matrix(&self, name: &str, source: &mut impl Read) -> Result<Matrix> {
        let [rows, others @ ..] = self.shape.as_slice() else {
            return Err(Error::Shape {
                key: name.to_owned(),
                expected: "[N, ...], at least one dimension".to_owned(),
                found: Vec::new(),
            });
        };
        let columns = others.iter().product();
        if self.fortran && others.len() > 1 {
            let reason =
                format!("array `{name}` is in Fortran order with more than two dimensions");
            return Err(Error::format(FORMAT, reason));
        }
        if self.fortran && columns > 1 {
            // Column after column: as a matrix, the transpose.
            let mut transpose = Vec::with_capacity(rows * columns);
            self.read_pieces(name, source, rows * columns, |piece| {
                transpose.extend_from_slice(piece);
                Ok(())
            })?;
            return Matrix::filled_by(*rows, columns, |writer| {
                (0..*rows).try_for_each(|row| {
                    let numbers = transpose.iter().skip(row).step_by(*rows).copied();
                    writer.write(&numbers.collect::<Vec<f32>>())
                })
            });
        }
        Matrix::filled_by(*rows, columns, |writer| {
            self.read_pieces(name, source, rows * columns, |piece| writer.write(piece))
        })
    }

    /// Hands on `count` numbers, some at a time.
    fn read_pieces(
        &self,
        name: &str,
        source: &mut impl Read,
        count: usize,
        mut take: impl FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        let size = self.element.size();
        let (mut bytes, mut numbers) = (vec![0; PIECE.min(count) * size], Vec::new());
        for start in (0..count).step_by(PIECE) {
            let bytes = &mut bytes[..(count - start).min(PIECE) * size];
            read_part(name, source, bytes, (start * size) as u64, (count * size) as u64)?;
            self.element.decode(bytes, &mut numbers);
            take(&numbers)?;
        }
        Ok(())
    }

    /// Reads the numbers of an array `[N]` of integers.
    pub(super) fn read_integers(&self, name: &str, source: &mut impl Read) -> Result<Vec<u64>> {
        let &[count] = self.shape.as_slice() else {
            let (key, expected) = (name.to_owned(), "[N]".to_owned());
            return Err(Error::Shape { key, expected, found: self.shape.clone() });
        };
        let mut bytes = vec![0; count * self.element.size()];
        read_exactly(name, source, &mut bytes)?;
        self.element.to_integers(name, &bytes)
    }
}

/// Fills `target`, or says how much of it there was.
fn read_exactly(name: &str, source: &mut impl Read, target: &mut [u8]) -> Result<()> {
    let total = target.len() as u64;
    read_part(name, source, target, 0, total)
}

/// Fills `target`, the part of an array of `total` bytes from byte `start` on.
fn read_part(
    name: &str,
    source: &mut impl Read,
    target: &mut [u8],
    start: u64,
    total: u64,
) -> Result<()> {
    let mut filled = 0;
    while filled < target.len() {
        match source.read(&mut target[filled..]) {
            Ok(0) => {
                let (key, found) = (name.to_owned(), start + filled as u64);
                return Err(Error::Truncated { key, expected: total, found });
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read an array")(error)),
        }
    }
    Ok(())
}
