//! The heads alone, on matrices that other programs have on the device.

use cm_nn::{Backend, Over, Pairing, Reduce, Result, Shape, Zip};
use cm_quasimetric::Head;

use crate::backend::CudaBackend;
use crate::tensor::{CudaCell, CudaTensor};
use crate::{Device, Precision};

/// MRN, IQE and Max, by rows and by pairs, forward and backward, on matrices in a GPU's memory:
/// those uploaded here, or those of another library that uses the same device.
///
/// Distances of `n` and `m` rows of `c` features take memory for `n m` numbers, never for `n m c`.
/// Everything runs on a stream of its own: wait for the stream that wrote a borrowed matrix before,
/// and for [`Device::wait`] before another stream reads a result.
///
/// ```
/// use cm_cuda::{Device, Heads};
/// use cm_nn::Pairing;
/// use cm_quasimetric::Head;
///
/// // Without a GPU there is nothing to see.
/// let Ok(device) = Device::open(0) else { return Ok(()) };
/// let heads = Heads::new(&device)?;
/// let x = heads.upload([2, 4], &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])?;
/// let distances = heads.distances(Head::Max, Pairing::All, &x, &x)?;
/// assert_eq!(heads.download(&distances)?, [0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Heads {
    backend: CudaBackend,
}

impl Heads {
    /// On a device.
    pub fn new(device: &Device) -> Result<Self> {
        // Neither draws nor products are needed.
        Ok(Self { backend: CudaBackend::new(device, &[0], Precision::Highest)? })
    }

    /// Copies a matrix to the device, row by row.
    pub fn upload(&self, shape: Shape, values: &[f32]) -> Result<CudaTensor> {
        if values.len() != shape[0] * shape[1] || values.is_empty() {
            let (operation, expected) = ("upload", format!("the values of a matrix {shape:?}"));
            return Err(cm_nn::Error::Shape {
                operation,
                expected,
                found: values.len().to_string(),
            });
        }
        self.backend.tensor(shape, values.to_vec())
    }

    /// A matrix at an address of the device's memory, row by row without gaps.
    ///
    /// # Safety
    /// There must be that many `f32` at the address in this device's memory, and they must stay
    /// there and unchanged until [`Device::wait`] returns after the last use of the matrix.
    pub unsafe fn borrow(&self, shape: Shape, address: u64) -> Result<CudaTensor> {
        Ok(CudaTensor::borrowed(shape, address)?)
    }

    /// The values, after everything asked for is done.
    pub fn download(&self, x: &CudaTensor) -> Result<Vec<f32>> {
        let values = self.backend.read(&[x])?;
        Ok(values.iter().flat_map(|values| values.replica(0)).copied().collect())
    }

    /// Distances from the rows of `x` to those of `y`: `[n, 1]` or `[n, m]`.
    pub fn distances(
        &self,
        head: Head,
        pairing: Pairing,
        x: &CudaTensor,
        y: &CudaTensor,
    ) -> Result<CudaTensor> {
        check(pairing, x, y)?;
        self.backend.quasimetric(head, pairing, x, y, None)
    }

    /// The gradients of `sum(weights * distances)` with respect to `x` and `y`: what a chain rule
    /// needs, with the gradient of the distances as weights.
    pub fn gradients(
        &self,
        head: Head,
        pairing: Pairing,
        [x, y]: [&CudaTensor; 2],
        weights: &CudaTensor,
    ) -> Result<[CudaTensor; 2]> {
        check(pairing, x, y)?;
        let columns = if pairing == Pairing::Rows { 1 } else { y.shape[0] };
        if weights.shape != [x.shape[0], columns] {
            let (operation, expected) = ("gradients of distances", "a weight for each distance");
            let found = format!("{:?}", weights.shape);
            return Err(cm_nn::Error::Shape { operation, expected: expected.to_owned(), found });
        }
        // Cells begin where their memory does, and no two share one.
        let is_shared = x.view.buffer.number() == y.view.buffer.number();
        let own = |matrix: &CudaTensor, copy: bool| match copy || matrix.view.offset > 0 {
            true => self.backend.affine(matrix, 1.0, 0.0),
            false => Ok(matrix.clone()),
        };
        let cells = [CudaCell::of(&own(x, false)?), CudaCell::of(&own(y, is_shared)?)];
        let mut found = self.backend.gradients(&cells, || {
            let [x, y] = [self.backend.load(&cells[0])?, self.backend.load(&cells[1])?];
            let distances = self.backend.quasimetric(head, pairing, &x, &y, None)?;
            let weighted = self.backend.zip(&distances, weights, Zip::Mul)?;
            self.backend.reduce(&weighted, Over::All, Reduce::Sum)
        })?;
        let to_y = found.remove(1);
        Ok([found.remove(0), to_y])
    }
}

fn check(pairing: Pairing, x: &CudaTensor, y: &CudaTensor) -> Result<()> {
    let fits = x.shape[1] == y.shape[1] && (pairing == Pairing::All || x.shape == y.shape);
    if fits {
        return Ok(());
    }
    let expected = match pairing {
        Pairing::Rows => "matrices of the same shape",
        Pairing::All => "matrices of the same number of columns",
    };
    let (operation, found) = ("distances", format!("{:?} and {:?}", x.shape, y.shape));
    Err(cm_nn::Error::Shape { operation, expected: expected.to_owned(), found })
}
