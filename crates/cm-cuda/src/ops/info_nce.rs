//! Cross entropy of square logits against their diagonal.

use cm_nn::{Direction, Over, Reduce, Result};

use super::{arguments, reduce};
use crate::backend::CudaBackend;
use crate::compile::Module::InfoNce;
use crate::tape::Slots;
use crate::tensor::{CudaTensor, maybe_read};

pub(crate) fn info_nce(
    backend: &CudaBackend,
    logits: &CudaTensor,
    direction: Direction,
) -> Result<CudaTensor> {
    let place = backend.place(logits);
    let n = logits.shape[0] as u32;
    let sums = |over| reduce::apply(backend, logits, over, Reduce::LogSumExp);
    let rows = (direction != Direction::Columns).then(|| sums(Over::Columns)).transpose()?;
    let columns = (direction != Direction::Rows).then(|| sums(Over::Rows)).transpose()?;
    let loss = backend.new_tensor([1, 1])?;
    let arguments = arguments![
        logits.read(),
        maybe_read(rows.as_ref()),
        maybe_read(columns.as_ref()),
        loss.write(),
        n
    ];
    backend.run(InfoNce, "info_nce", 1, 256, 0, arguments)?;
    Ok(backend.record(loss, &[place], || {
        let logits = logits.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dl = backend.new_tensor(logits.shape)?;
            let arguments = arguments![
                logits.read(),
                maybe_read(rows.as_ref()),
                maybe_read(columns.as_ref()),
                dy.read(),
                dl.write(),
                n,
                dl.count()
            ];
            backend.each(InfoNce, "info_nce_gradient", dl.count(), arguments)?;
            slots.add(place, dl);
            Ok(())
        }
    }))
}
