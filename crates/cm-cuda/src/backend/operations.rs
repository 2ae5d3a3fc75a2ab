//! cm-nn's operations, each handed to its own file.

use cm_nn::backend::AdamCells;
use cm_nn::{
    Activation, AdamSettings, Axis, Backend, Captured, Direction, Distribution, Map, Over, Pairing,
    Reduce, Shape, Values, Zip,
};
use cm_quasimetric::Head;

use crate::Result;
use crate::backend::CudaBackend;
use crate::ops;
use crate::tensor::{CudaCell, CudaTensor};

impl Backend for CudaBackend {
    type Tensor = CudaTensor;
    type Cell = CudaCell;

    fn seeds(&self) -> &[u64] {
        &self.inner.seeds
    }

    fn shape(x: &CudaTensor) -> Shape {
        x.shape
    }

    fn tensor(&self, shape: Shape, values: Vec<f32>) -> cm_nn::Result<CudaTensor> {
        let instead = "make it before the step, or write a cell";
        self.outside_capture("making a tensor from host values", instead)?;
        let tensor = self.new_buffer(shape, 1)?;
        self.device().context().copy_in(tensor.view.buffer.address()?, &values)?;
        Ok(tensor)
    }

    fn full(&self, shape: Shape, value: f32) -> cm_nn::Result<CudaTensor> {
        Ok(self.constant(shape, value)?)
    }

    fn read(&self, tensors: &[&CudaTensor]) -> cm_nn::Result<Vec<Values>> {
        self.outside_capture("reading values", "return the tensor from the step")?;
        let values = tensors.iter().map(|tensor| self.download(tensor));
        let values = values.collect::<Result<Vec<_>>>()?;
        self.device().wait()?;
        Ok(values.into_iter().map(|values| Values::new(values, self.replicas())).collect())
    }

    fn cell(&self, shape: Shape, values: Vec<Vec<f32>>) -> cm_nn::Result<CudaCell> {
        self.outside_capture("making a cell", "make it before the step")?;
        if values.len() != self.replicas() {
            let expected = format!("one set for each of {} replicas", self.replicas());
            let what = "values of a cell";
            return Err(cm_nn::Error::Replicas { what, expected, found: values.len() });
        }
        let tensor = self.new_buffer(shape, self.replicas())?;
        let cell = CudaCell { buffer: tensor.view.buffer, shape };
        for (replica, values) in values.iter().enumerate() {
            self.upload(&cell, replica, values)?;
        }
        Ok(cell)
    }

    fn write(&self, replica: usize, cells: &[(&CudaCell, &[f32])]) -> cm_nn::Result<()> {
        self.outside_capture("writing a cell", "write it between two runs")?;
        if replica >= self.replicas() {
            let expected = format!("one below {}", self.replicas());
            let what = "the replica to write";
            return Err(cm_nn::Error::Replicas { what, expected, found: replica });
        }
        for (cell, values) in cells {
            self.upload(cell, replica, values)?;
        }
        Ok(())
    }

    fn capture<'a, T: 'a>(
        &self,
        mut step: impl FnMut() -> cm_nn::Result<T> + 'a,
    ) -> Captured<'a, T> {
        let backend = self.clone();
        let mut recorded = None;
        Captured::new(move |outputs| {
            let outputs = match outputs.filter(|_| recorded.is_some()) {
                Some(outputs) => outputs,
                None => {
                    recorded = None;
                    let (outputs, step) = backend.record_step(&mut step)?;
                    recorded = Some(step);
                    outputs
                }
            };
            recorded.iter().try_for_each(|recorded| backend.replay(recorded))?;
            Ok(outputs)
        })
    }

    fn load(&self, cell: &CudaCell) -> cm_nn::Result<CudaTensor> {
        Ok(CudaTensor { place: self.wanted_place(cell), ..cell.tensor() })
    }

    fn gradients(
        &self,
        wanted: &[CudaCell],
        loss: impl FnOnce() -> cm_nn::Result<CudaTensor>,
    ) -> cm_nn::Result<Vec<CudaTensor>> {
        self.differentiate(wanted, loss)
    }

    fn stop_gradient(&self, x: &CudaTensor) -> CudaTensor {
        self.stop(x)
    }

    fn linear(
        &self,
        x: &CudaTensor,
        w: &CudaTensor,
        b: Option<&CudaTensor>,
        activation: Activation,
    ) -> cm_nn::Result<CudaTensor> {
        ops::linear::linear(self, x, w, b, activation)
    }

    fn l2_normalize(&self, x: &CudaTensor, epsilon: f32) -> cm_nn::Result<CudaTensor> {
        ops::layer_norm::l2_normalize(self, x, epsilon)
    }

    fn layer_norm(
        &self,
        x: &CudaTensor,
        gain: &CudaTensor,
        bias: &CudaTensor,
        epsilon: f32,
    ) -> cm_nn::Result<CudaTensor> {
        ops::layer_norm::layer_norm(self, x, gain, bias, epsilon)
    }

    fn affine(&self, x: &CudaTensor, scale: f32, shift: f32) -> cm_nn::Result<CudaTensor> {
        ops::elementwise::affine(self, x, scale, shift)
    }

    fn map(&self, x: &CudaTensor, f: Map) -> cm_nn::Result<CudaTensor> {
        ops::elementwise::map(self, x, f)
    }

    fn zip(&self, x: &CudaTensor, y: &CudaTensor, f: Zip) -> cm_nn::Result<CudaTensor> {
        ops::zip::zip(self, x, y, f)
    }

    fn reduce(&self, x: &CudaTensor, over: Over, f: Reduce) -> cm_nn::Result<CudaTensor> {
        ops::reduce::reduce(self, x, over, f)
    }

    fn concat(&self, parts: &[&CudaTensor], axis: Axis) -> cm_nn::Result<CudaTensor> {
        ops::layout::concat(self, parts, axis)
    }

    fn slice(
        &self,
        x: &CudaTensor,
        axis: Axis,
        start: usize,
        count: usize,
    ) -> cm_nn::Result<CudaTensor> {
        ops::layout::slice(self, x, axis, start, count)
    }

    fn roll(&self, x: &CudaTensor, shift: usize) -> cm_nn::Result<CudaTensor> {
        ops::layout::roll(self, x, shift)
    }

    fn gather(&self, x: &CudaTensor, index: &CudaTensor) -> cm_nn::Result<CudaTensor> {
        ops::layout::gather(self, x, index)
    }

    fn transpose(&self, x: &CudaTensor) -> cm_nn::Result<CudaTensor> {
        ops::layout::transpose(self, x)
    }

    fn diagonal(&self, x: &CudaTensor) -> cm_nn::Result<CudaTensor> {
        ops::layout::diagonal(self, x)
    }

    fn quasimetric(
        &self,
        head: Head,
        pairing: Pairing,
        x: &CudaTensor,
        y: &CudaTensor,
        logit: Option<&CudaTensor>,
    ) -> cm_nn::Result<CudaTensor> {
        ops::distance::quasimetric(self, head, pairing, x, y, logit)
    }

    fn info_nce(&self, logits: &CudaTensor, direction: Direction) -> cm_nn::Result<CudaTensor> {
        ops::info_nce::info_nce(self, logits, direction)
    }

    fn tanh_normal_log_density(
        &self,
        mean: &CudaTensor,
        scale: &CudaTensor,
        action: &CudaTensor,
    ) -> cm_nn::Result<CudaTensor> {
        ops::density::tanh_normal_log_density(self, mean, scale, action)
    }

    fn draw(
        &self,
        shape: Shape,
        distribution: Distribution,
        stream: u32,
    ) -> cm_nn::Result<CudaTensor> {
        ops::random::draw(self, shape, distribution, stream)
    }

    fn categorical(&self, logits: &CudaTensor, stream: u32) -> cm_nn::Result<CudaTensor> {
        ops::random::categorical(self, logits, stream)
    }

    fn permutation(&self, n: usize, stream: u32) -> cm_nn::Result<CudaTensor> {
        ops::random::permutation(self, n, stream)
    }

    fn adam(
        &self,
        settings: &AdamSettings,
        state: AdamCells<'_, Self>,
        gradients: &[CudaTensor],
    ) -> cm_nn::Result<()> {
        ops::optimise::adam(self, settings, &state, gradients)
    }

    fn sgd(
        &self,
        learning_rate: f32,
        cells: &[CudaCell],
        gradients: &[CudaTensor],
    ) -> cm_nn::Result<()> {
        ops::optimise::sgd(self, learning_rate, cells, gradients)
    }

    fn blend(&self, decay: f32, targets: &[CudaCell], sources: &[CudaCell]) -> cm_nn::Result<()> {
        ops::optimise::blend(self, decay, targets, sources)
    }

    fn step(&self) -> cm_nn::Result<u64> {
        self.outside_capture("reading the step", "read it between two runs")?;
        let mut step = [0_u64];
        self.device().context().copy_out(self.inner.step_buffer.address()?, &mut step)?;
        self.device().wait()?;
        Ok(step[0])
    }

    fn set_step(&self, step: u64) -> cm_nn::Result<()> {
        self.outside_capture("setting the step", "set it between two runs")?;
        Ok(self.device().context().copy_in(self.inner.step_buffer.address()?, &[step])?)
    }

    fn advance(&self) -> cm_nn::Result<()> {
        ops::random::advance(self)
    }
}
