//! Layer normalisation, and rows of length 1.

use std::ops::RangeInclusive;
use std::rc::Rc;

use cm_nn::{Result, Shape};

use super::arguments;
use super::product::has_warpgroups;
use super::reduce::column_sums;
use crate::backend::CudaBackend;
use crate::capture::Recorder;
use crate::compile::Module::{LayerNorm, Operands};
use crate::launch::{Argument, Launch};
use crate::operands::{PACK_THREADS, squares};
use crate::tape::Slots;
use crate::tensor::CudaTensor;

/// Columns of rows that a warp keeps in registers, as `layer_norm.cu` can: narrower ones are as
/// fast without.
const HELD: RangeInclusive<usize> = 257..=512;

/// Columns of rows that four threads have, as `operands.cu` can.
const SHORT: usize = 16;

pub(crate) fn layer_norm(
    backend: &CudaBackend,
    x: &CudaTensor,
    gain: &CudaTensor,
    bias: &CudaTensor,
    epsilon: f32,
) -> Result<CudaTensor> {
    let places = [backend.place(x), backend.place(gain), backend.place(bias)];
    let [rows, columns] = x.shape;
    let (y, normal) = (backend.new_tensor(x.shape)?, backend.new_tensor(x.shape)?);
    let deviation = backend.new_tensor([rows, 1])?;
    let arguments = arguments![
        x.read(),
        gain.read(),
        bias.read(),
        normal.write(),
        deviation.write(),
        y.write(),
        rows as u32,
        columns as u32,
        epsilon
    ];
    let is_held = HELD.contains(&columns);
    let kernel = if is_held { "layer_norm_held" } else { "layer_norm" };
    backend.warps(LayerNorm, kernel, rows, arguments)?;
    Ok(backend.record(y, &places, || {
        let gain = gain.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let [x_place, gain_place, bias_place] = places;
            if let Some(place) = bias_place {
                slots.add(place, column_sums(backend, &dy, None)?);
            }
            if let Some(place) = gain_place {
                slots.add(place, column_sums(backend, &dy, Some(&normal))?);
            }
            let Some(place) = x_place else { return Ok(()) };
            let dx = backend.new_tensor(dy.shape)?;
            let arguments = arguments![
                dy.read(),
                gain.read(),
                normal.read(),
                deviation.read(),
                dx.write(),
                rows as u32,
                columns as u32
            ];
            let kernel = if is_held { "layer_norm_gradient_held" } else { "layer_norm_gradient" };
            backend.warps(LayerNorm, kernel, rows, arguments)?;
            slots.add(place, dx);
            Ok(())
        }
    }))
}

/// Rows divided by their lengths.
pub(crate) fn l2_normalize(
    backend: &CudaBackend,
    x: &CudaTensor,
    epsilon: f32,
) -> Result<CudaTensor> {
    let place = backend.place(x);
    let y = backend.new_tensor(x.shape)?;
    let goes_on = |recorder| goes_on(recorder, x, &y, epsilon);
    let is_made = backend.recorder().borrow_mut().as_mut().is_some_and(goes_on);
    if !is_made {
        let arguments = normalized(&[x.read(), y.write()], x.shape, epsilon);
        run(backend, ["l2_normalize", "l2_normalize_packed"], &y, arguments)?;
    }
    Ok(backend.record(y, &[place], || {
        let x = x.clone();
        move |backend: &CudaBackend, slots: &mut Slots, dy: CudaTensor| {
            let Some(place) = place else { return Ok(()) };
            let dx = backend.new_tensor(x.shape)?;
            let goes_on = |recorder| goes_on_back(recorder, &x, &dy, &dx, epsilon);
            let is_made = backend.recorder().borrow_mut().as_mut().is_some_and(goes_on);
            if !is_made {
                let matrices = [x.read(), dy.read(), dx.write()];
                let arguments = normalized(&matrices, x.shape, epsilon);
                let kernels = ["l2_normalize_gradient", "l2_normalize_gradient_packed"];
                run(backend, kernels, &dx, arguments)?;
            }
            slots.add(place, dx);
            Ok(())
        }
    }))
}

/// Runs the first kernel, or for short rows that products read the second, which stores them as
/// operands, too.
fn run(
    backend: &CudaBackend,
    [plain, packed]: [&'static str; 2],
    result: &CudaTensor,
    mut arguments: Vec<Argument>,
) -> Result<()> {
    let [rows, columns] = result.shape;
    if columns > SHORT || !has_warpgroups(backend) {
        return backend.warps(LayerNorm, plain, rows, arguments);
    }
    arguments.extend(arguments![Argument::Nothing, Argument::Nothing, Argument::Nothing]);
    let module = Operands(backend.precision());
    backend.run(module, packed, squares(result.shape), PACK_THREADS, 0, arguments)?;
    backend.note_maker(result);
    Ok(())
}

/// Arguments of `l2_normalize` or of its gradient, without what either may go on with.
fn normalized(matrices: &[Argument], [rows, columns]: Shape, epsilon: f32) -> Vec<Argument> {
    let mut arguments = matrices.to_vec();
    let nothing = Argument::Nothing;
    arguments.extend(arguments![nothing, rows as u32, columns as u32, epsilon, 0.0_f32]);
    arguments
}

/// Where those are that are looked at.
mod normalize {
    pub(super) const RESULT: usize = 1;
    pub(super) const NEXT: usize = 2;
    pub(super) const NEXT_EPSILON: usize = 6;
}

mod normalize_gradient {
    pub(super) const RESULT: usize = 2;
    pub(super) const BEFORE: usize = 3;
    pub(super) const EPSILON_BEFORE: usize = 7;
}

/// If `x` was recorded as rows divided by their lengths, as actions of length 1 are that become
/// features: lets that kernel divide them once more, into `y`.
fn goes_on(recorder: &mut Recorder, x: &CudaTensor, y: &CudaTensor, epsilon: f32) -> bool {
    use normalize::{NEXT, NEXT_EPSILON, RESULT};
    let Some(maker) = recorder.last_writer(x) else { return false };
    let launch = &recorder.launches[maker];
    let is_it = ["l2_normalize", "l2_normalize_packed"].contains(&launch.kernel)
        && makes(launch, RESULT, x)
        && matches!(launch.arguments[NEXT], Argument::Nothing);
    if !is_it || !recorder.operands.pass_on(x, y) {
        return false;
    }
    let launch = &mut recorder.launches[maker];
    launch.arguments[NEXT] = y.write();
    launch.arguments[NEXT_EPSILON] = epsilon.into();
    true
}

/// The same for the gradient `dy` of what `x` became, if nobody else needs it.
fn goes_on_back(
    recorder: &mut Recorder,
    x: &CudaTensor,
    dy: &CudaTensor,
    dx: &CudaTensor,
    epsilon: f32,
) -> bool {
    use normalize_gradient::{BEFORE, EPSILON_BEFORE, RESULT};
    let Some(maker) = recorder.last_writer(dy) else { return false };
    let is_there = recorder.last_writer(x).is_none_or(|writer| writer < maker);
    let launch = &recorder.launches[maker];
    // The kernel and `dy` have it.
    let is_ours = !dy.view.buffer.is_placed() && Rc::strong_count(&dy.view.buffer) == 2;
    let kernels = ["l2_normalize_gradient", "l2_normalize_gradient_packed"];
    let is_gradient = kernels.contains(&launch.kernel)
        && makes(launch, RESULT, dy)
        && matches!(launch.arguments[BEFORE], Argument::Nothing);
    if !is_there || !is_ours || !is_gradient || !recorder.operands.pass_on(dy, dx) {
        return false;
    }
    let launch = &mut recorder.launches[maker];
    launch.arguments[RESULT] = dx.write();
    launch.arguments[BEFORE] = x.read();
    launch.arguments[EPSILON_BEFORE] = epsilon.into();
    true
}

/// Whether all of `x` is what the launch stores at `result`. Its rows and columns are its first
/// whole numbers.
fn makes(launch: &Launch, result: usize, x: &CudaTensor) -> bool {
    let mut sizes = launch.arguments.iter().filter_map(Argument::unsigned);
    launch.arguments[result].is_at(x.view.buffer.number(), x.view.offset)
        && x.shape.iter().all(|&size| sizes.next() == Some(size as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::testing::{launch, tensor};

    fn forward(x: &CudaTensor, y: &CudaTensor) -> Launch {
        launch(LayerNorm, "l2_normalize", normalized(&[x.read(), y.write()], x.shape, 0.25))
    }

    fn backward(x: &CudaTensor, dy: &CudaTensor, dx: &CudaTensor) -> Launch {
        let matrices = [x.read(), dy.read(), dx.write()];
        launch(LayerNorm, "l2_normalize_gradient", normalized(&matrices, x.shape, 0.25))
    }

    #[test]
    fn rows_of_length_1_are_made_in_one_go() {
        let [x, y, z] = [(); 3].map(|()| tensor([4, 2]));
        let mut recorder = Recorder::default();
        recorder.push(forward(&x, &y));
        assert!(goes_on(&mut recorder, &y, &z, 0.5));
        let arguments = &recorder.launches[0].arguments;
        assert!(arguments[normalize::NEXT].is_at(z.view.buffer.number(), 0));
        assert!(matches!(arguments[normalize::NEXT_EPSILON], Argument::Float(0.5)));
        // Once; and not for some of the rows, or what something else has made.
        assert!(!goes_on(&mut recorder, &y, &tensor([4, 2]), 0.5));
        let mut recorder = Recorder::default();
        recorder.push(forward(&x, &y));
        assert!(!goes_on(&mut recorder, &y.at(0, [2, 2]), &tensor([2, 2]), 0.5));
        assert!(!goes_on(&mut recorder, &x, &z, 0.5));
        recorder.push(launch(LayerNorm, "other", arguments![y.update()]));
        assert!(!goes_on(&mut recorder, &y, &z, 0.5));
    }

    #[test]
    fn gradients_of_rows_of_length_1_are_made_in_one_go() {
        let [x, y, dz, dx] = [(); 4].map(|()| tensor([4, 2]));
        let recorded = |dy: &CudaTensor| {
            let mut recorder = Recorder::default();
            recorder.push(forward(&x, &y));
            recorder.push(backward(&y, &dz, dy));
            recorder
        };
        let dy = tensor([4, 2]);
        let mut recorder = recorded(&dy);
        assert!(goes_on_back(&mut recorder, &x, &dy, &dx, 0.5));
        let arguments = &recorder.launches[1].arguments;
        assert!(arguments[normalize_gradient::RESULT].is_at(dx.view.buffer.number(), 0));
        assert!(arguments[normalize_gradient::BEFORE].is_at(x.view.buffer.number(), 0));
        // Not if somebody else has it, or what it needs is there only later.
        let dy = tensor([4, 2]);
        let held = dy.clone();
        assert!(!goes_on_back(&mut recorded(&dy), &x, &held, &dx, 0.5));
        drop(held);
        let mut recorder = recorded(&dy);
        recorder.push(launch(LayerNorm, "other", arguments![x.update()]));
        assert!(!goes_on_back(&mut recorder, &x, &dy, &dx, 0.5));
    }
}
