//! safetensors files of named arrays.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use super::ReadOptions;
use super::arrays::{Arrays, Terminals, assemble};
use super::element::{Element, PIECE};
use crate::store::map_file;
use crate::{Dataset, Error, Matrix, Result};

const FORMAT: &str = "safetensors";

pub(super) fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    let map = map_file(path)?;
    // Checks that every tensor lies inside the file and has the size its shape says.
    let tensors = SafeTensors::deserialize(&map).map_err(|error| Error::format(FORMAT, error))?;
    assemble(&mut Tensors(tensors), Terminals::EndTrajectories, options)
}

struct Tensors<'a>(SafeTensors<'a>);

impl Arrays for Tensors<'_> {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.names().into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    fn numbers(&mut self, name: &str) -> Result<Matrix> {
        let (element, shape, bytes) = self.tensor(name)?;
        let [rows, others @ ..] = shape.as_slice() else {
            let (key, expected) = (name.to_owned(), "[N, ...]".to_owned());
            return Err(Error::Shape { key, expected, found: shape });
        };
        Matrix::filled_by(*rows, others.iter().product(), |writer| {
            let mut numbers = Vec::new();
            bytes.chunks(PIECE * element.size()).try_for_each(|piece| {
                element.decode(piece, &mut numbers);
                writer.write(&numbers)
            })
        })
    }

    fn integers(&mut self, name: &str) -> Result<Vec<u64>> {
        let (element, _, bytes) = self.tensor(name)?;
        element.to_integers(name, bytes)
    }
}

impl Tensors<'_> {
    fn tensor(&self, name: &str) -> Result<(Element, Vec<usize>, &[u8])> {
        let tensor = self.0.tensor(name).map_err(|error| Error::format(FORMAT, error))?;
        let descr = match tensor.dtype() {
            Dtype::F32 => "<f4",
            Dtype::F64 => "<f8",
            Dtype::BOOL => "|b1",
            Dtype::I8 => "|i1",
            Dtype::I16 => "<i2",
            Dtype::I32 => "<i4",
            Dtype::I64 => "<i8",
            Dtype::U8 => "|u1",
            Dtype::U16 => "<u2",
            Dtype::U32 => "<u4",
            Dtype::U64 => "<u8",
            other => {
                return Err(Error::ElementType {
                    key: name.to_owned(),
                    expected: "F32, F64, BOOL, I8 to I64 or U8 to U64",
                    found: format!("{other:?}"),
                });
            }
        };
        Ok((Element::parse(name, descr)?, tensor.shape().to_vec(), tensor.data()))
    }
}
