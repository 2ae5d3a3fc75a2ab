//! Snapshots as safetensors files, which any other tool can read.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::{Matrix, Snapshot};
use crate::{Error, Result};

impl Snapshot {
    /// The bytes of a safetensors file: one `F32` tensor `[rows, columns]` per matrix.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        let bytes = self.iter().map(|(name, matrix)| {
            let bytes = matrix.values.iter().flat_map(|value| value.to_le_bytes());
            (name, matrix.shape, bytes.collect::<Vec<u8>>())
        });
        let bytes = bytes.collect::<Vec<_>>();
        let views = bytes.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
            Ok((name.to_string(), view.map_err(refused)?))
        });
        safetensors::serialize(views.collect::<Result<Vec<_>>>()?, None).map_err(refused)
    }

    /// Reads a safetensors file of `F32` tensors. A vector of `n` becomes `[1, n]`, a scalar
    /// `[1, 1]`; more than two dimensions are refused.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(refused)?;
        let tensors = file.iter().map(|(name, view)| {
            if view.dtype() != Dtype::F32 {
                let message = format!("tensor `{name}` must be F32, found {:?}", view.dtype());
                return Err(Error::Safetensors(message));
            }
            let shape = match *view.shape() {
                [] => [1, 1],
                [columns] => [1, columns],
                [rows, columns] => [rows, columns],
                ref other => {
                    let message = format!("tensor `{name}` must be a matrix, found {other:?}");
                    return Err(Error::Safetensors(message));
                }
            };
            let values = view.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
            Ok((name.to_string(), Matrix { shape, values: values.collect() }))
        });
        tensors.collect()
    }

    /// Replaces the file at `path` by a safetensors file, whole or not at all (see [`cm_files`]).
    pub fn save_safetensors(&self, path: &Path) -> Result<()> {
        Ok(cm_files::replace(path, self.to_safetensors()?)?)
    }

    /// Reads a safetensors file; errors name it.
    pub fn load_safetensors(path: &Path) -> Result<Self> {
        let file = |cause| Error::File { path: path.to_path_buf(), cause };
        let bytes = std::fs::read(path).map_err(file)?;
        Self::from_safetensors(&bytes)
            .map_err(|cause| Error::Content { path: path.to_path_buf(), cause: cause.into() })
    }
}

fn refused(error: safetensors::SafeTensorError) -> Error {
    Error::Safetensors(error.to_string())
}
