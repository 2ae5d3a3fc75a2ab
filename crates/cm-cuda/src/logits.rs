//! What logits are made of, and what becomes of their gradient, as part of InfoNCE's own kernels.
//!
//! Logits are distances with a sign, a temperature and a number for each column. Recorded is a chain
//! that stores them, and one that multiplies their gradient; neither is needed. The numbers are the
//! same either way.

use std::rc::Rc;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use, View};
use crate::ops::chain::{Op, member};
use crate::ops::info_nce::{Logits, gradient};

/// The launches without those that InfoNCE's kernels can do the work of.
pub(crate) fn join_logits(launches: Vec<Launch>) -> Vec<Launch> {
    let mut joining = Joining { launches: launches.into_iter().map(Some).collect() };
    for index in 0..joining.launches.len() {
        if joining.is_chain(index) && !joining.join_before(index) {
            joining.join_after(index);
        }
    }
    joining.launches.into_iter().flatten().collect()
}

struct Joining {
    launches: Vec<Option<Launch>>,
}

impl Joining {
    fn is_chain(&self, index: usize) -> bool {
        self.launches[index].as_ref().is_some_and(|launch| launch.module == Module::Chain)
    }

    /// Lets those that read what the chain stores compute it themselves, if nobody else reads it.
    fn join_before(&mut self, index: usize) -> bool {
        let Some((logits, result)) = self.launches[index].as_ref().and_then(made_logits) else {
            return false;
        };
        let number = result.buffer.number();
        let mut readers = Vec::new();
        for (other, launch) in self.launches.iter().enumerate() {
            let Some(launch) = launch.as_ref().filter(|_| other != index) else { continue };
            match (launch.uses(number), takes_logits(launch, number)) {
                (0, _) => {}
                (1, true) => readers.push(other),
                _ => return false,
            }
        }
        // Besides the readers, the chain and `result` have it.
        let is_ours =
            !result.buffer.is_placed() && Rc::strong_count(&result.buffer) == readers.len() + 2;
        let mut later = self.launches[index + 1..].iter().flatten();
        let mut read = Vec::new();
        each_matrix(&logits, |view| read.push(view.buffer.number()));
        let stays = later.all(|launch| read.iter().all(|&number| !launch.writes(number)));
        if !is_ours || !stays || readers.is_empty() {
            return false;
        }
        for reader in readers {
            if let Some(launch) = &mut self.launches[reader] {
                launch.arguments[0] = logits.argument();
            }
        }
        self.launches[index] = None;
        true
    }

    /// Lets InfoNCE's gradient store what the chain makes of it.
    fn join_after(&mut self, index: usize) {
        let Some((logits, result)) = self.launches[index].as_ref().and_then(made_logits) else {
            return;
        };
        let Logits { x: Argument::Matrix(x, _), column: Argument::Nothing, scale, shift: 0.0 } =
            logits
        else {
            return;
        };
        let number = x.buffer.number();
        let maker = (0..index).rev().find(|&other| {
            self.launches[other].as_ref().is_some_and(|launch| launch.writes(number))
        });
        let Some(maker) = maker else { return };
        let count =
            self.launches[index].as_ref().and_then(|chain| chain.arguments.get(3)?.unsigned());
        let is_gradient = self.launches[maker].as_ref().is_some_and(|launch| {
            launch.kernel == "info_nce_gradient"
                && launch.arguments.last().and_then(Argument::unsigned) == count
                && launch.arguments[gradient::RESULT].is_at(number, 0)
                && matches!(launch.arguments[gradient::SCALED], Argument::Nothing)
        });
        // Nobody may see the result change before the chain would have.
        let made = result.buffer.number();
        let mut between = self.launches[maker + 1..index].iter().flatten();
        if !is_gradient || x.offset != 0 || between.any(|launch| launch.uses(made) > 0) {
            return;
        }
        self.launches[index] = None;
        let mut others = self.launches.iter().enumerate();
        let is_read = others.any(|(other, launch)| {
            other != maker && launch.as_ref().is_some_and(|launch| launch.uses(number) > 0)
        });
        // Besides the maker, `x` has it.
        let is_held = x.buffer.is_placed() || Rc::strong_count(&x.buffer) > 2;
        if let Some(launch) = &mut self.launches[maker] {
            launch.arguments[gradient::SCALED] = Argument::Matrix(result, Use::Write);
            launch.arguments[gradient::FACTOR] = Argument::Float(scale);
            if !is_read && !is_held {
                launch.arguments[gradient::RESULT] = Argument::Nothing;
            }
        }
    }
}

/// What a chain stores, if it is `scale x + shift + column` and nothing else is stored.
fn made_logits(launch: &Launch) -> Option<(Logits, View)> {
    let [Argument::Struct(steps, _), _, columns, ..] = &launch.arguments[..] else { return None };
    let steps = steps.iter().map(|step| match step {
        Argument::Struct(members, _) => Some(&members[..]),
        _ => None,
    });
    let steps = steps.collect::<Option<Vec<_>>>()?;
    let (last, before) = steps.split_last()?;
    if before.iter().any(|step| !matches!(step[member::OUT], Argument::Nothing)) {
        return None;
    }
    let Argument::Matrix(result, Use::Write) = &last[member::OUT] else { return None };
    let (first, rest) = steps.split_first()?;
    let is_whole = first[member::X_ROW].unsigned() == columns.unsigned()
        && first[member::X_COLUMN].unsigned() == Some(1);
    if !is(first, Op::Load) || !is_whole {
        return None;
    }
    let mut logits = Logits::new(first[member::X].clone());
    let mut rest = rest.iter();
    let mut next = rest.next();
    if let Some(step) = next.filter(|step| is(step, Op::Affine)) {
        let [Argument::Float(scale), Argument::Float(shift)] =
            [&step[member::LOW], &step[member::HIGH]]
        else {
            return None;
        };
        (logits.scale, logits.shift) = (*scale, *shift);
        next = rest.next();
    }
    if let Some(step) = next {
        let is_added = is(step, Op::Zip)
            && matches!(step[member::F], Argument::Signed(code) if code == cm_nn::Zip::Add as i32);
        let steps = [member::X_ROW, member::X_COLUMN].map(|place| step[place].unsigned());
        if !is_added || steps != [Some(0), Some(1)] || rest.next().is_some() {
            return None;
        }
        logits.column = step[member::X].clone();
    }
    Some((logits, result.clone()))
}

fn is(step: &[Argument], op: Op) -> bool {
    matches!(step[member::OP], Argument::Signed(code) if code == op as i32)
}

/// Whether it takes the whole matrix as logits, as it is.
fn takes_logits(launch: &Launch, number: u64) -> bool {
    let Some(Argument::Struct(members, _)) = launch.arguments.first() else { return false };
    let is_plain = matches!(
        members[..],
        [_, Argument::Nothing, Argument::Float(scale), Argument::Float(shift)]
            if scale == 1.0 && shift == 0.0
    );
    launch.module == Module::InfoNce && is_plain && members[0].is_at(number, 0)
}

fn each_matrix(logits: &Logits, mut visit: impl FnMut(&View)) {
    for argument in [&logits.x, &logits.column] {
        if let Argument::Matrix(view, _) = argument {
            visit(view);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use cm_nn::Zip;

    use super::*;
    use crate::launch::testing::{launch, tensor};
    use crate::ops::arguments;
    use crate::ops::chain::Chain;
    use crate::tensor::CudaTensor;

    /// A kernel of InfoNCE that reads the logits.
    fn reader(logits: &CudaTensor) -> Launch {
        let sums = tensor([4, 1]);
        let logits = Logits::new(logits.read()).argument();
        launch(Module::InfoNce, "info_nce_sums", arguments![logits, sums.write()])
    }

    /// InfoNCE's gradient `dl` with respect to the logits.
    pub(crate) fn gradient_of(logits: &CudaTensor, dl: &CudaTensor) -> Launch {
        let logits = Logits::new(logits.read()).argument();
        let [rows, columns, dy] = [(); 3].map(|()| tensor([4, 1]).read());
        let nothing = Argument::Nothing;
        let arguments =
            arguments![logits, rows, columns, dy, dl.write(), nothing, 1.0_f32, 4_u32, dl.count()];
        launch(Module::InfoNce, "info_nce_gradient", arguments)
    }

    /// A kernel that reads `x`.
    pub(crate) fn other(x: &CudaTensor) -> Launch {
        launch(Module::Reduce, "other", arguments![x.read()])
    }

    #[test]
    fn logits_are_computed_by_those_who_read_them() {
        let (d, column, logits) = (tensor([4, 4]), tensor([1, 4]), tensor([4, 4]));
        let chain = || Chain::load(&d, d.shape).affine(-1.0, 0.0).zip(Zip::Add, &column);
        let launches = vec![chain().launch(&logits, 1), reader(&logits), reader(&logits)];
        drop(logits);
        let launches = join_logits(launches);
        assert_eq!(launches.len(), 2);
        for launch in launches {
            let Argument::Struct(members, _) = &launch.arguments[0] else { panic!() };
            assert!(members[0].is_at(d.view.buffer.number(), 0));
            assert!(members[1].is_at(column.view.buffer.number(), 0));
            assert!(matches!(members[2..], [Argument::Float(-1.0), Argument::Float(0.0)]));
        }
    }

    #[test]
    fn logits_that_others_read_or_that_are_something_else_are_stored() {
        let (d, row, x) = (tensor([4, 4]), tensor([4, 1]), tensor([4, 4]));
        let count = |chain: Chain, more: fn(&CudaTensor) -> Option<Launch>| {
            let logits = tensor([4, 4]);
            let mut launches = vec![chain.launch(&logits, 1), reader(&logits)];
            launches.extend(more(&logits));
            drop(logits);
            let before = launches.len();
            before - join_logits(launches).len()
        };
        let plain = || Chain::load(&d, d.shape).affine(-1.0, 0.0);
        assert_eq!(count(plain(), |_| None), 1);
        assert_eq!(count(plain(), |logits| Some(other(logits))), 0);
        assert_eq!(count(plain().zip(Zip::Add, &row), |_| None), 0);
        assert_eq!(count(plain().zip(Zip::Add, &x), |_| None), 0);
        assert_eq!(count(plain().affine(2.0, 0.0), |_| None), 0);
        // Somebody holds on to them, or what they are made of changes.
        let logits = tensor([4, 4]);
        assert_eq!(join_logits(vec![plain().launch(&logits, 1), reader(&logits)]).len(), 2);
        let logits = tensor([4, 4]);
        let overwrites = launch(Module::Reduce, "other", arguments![d.write()]);
        let launches = vec![plain().launch(&logits, 1), reader(&logits), overwrites];
        drop(logits);
        assert_eq!(join_logits(launches).len(), 3);
    }

    #[test]
    fn the_gradient_is_stored_as_it_is_needed() {
        let found = |is_read: bool| {
            let [logits, dl, scaled] = [(); 3].map(|()| tensor([4, 4]));
            let mut launches = vec![gradient_of(&logits, &dl)];
            launches.extend(is_read.then(|| other(&dl)));
            launches.push(Chain::load(&dl, dl.shape).affine(-2.0, 0.0).launch(&scaled, 1));
            drop(dl);
            let launches = join_logits(launches);
            let arguments = &launches[0].arguments;
            assert!(arguments[gradient::SCALED].is_at(scaled.view.buffer.number(), 0));
            assert!(matches!(arguments[gradient::FACTOR], Argument::Float(-2.0)));
            let is_stored = matches!(arguments[gradient::RESULT], Argument::Matrix(..));
            (launches.len(), is_stored)
        };
        assert_eq!(found(false), (1, false));
        assert_eq!(found(true), (2, true));
        // Not if it is some rows of it only.
        let [logits, dl] = [(); 2].map(|()| tensor([4, 4]));
        let some = tensor([2, 4]);
        let chain = Chain::load(&dl.at(0, some.shape), some.shape).affine(-2.0, 0.0);
        assert_eq!(join_logits(vec![gradient_of(&logits, &dl), chain.launch(&some, 1)]).len(), 2);
    }
}
