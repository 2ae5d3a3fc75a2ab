//! What logits are made of, and what becomes of their gradient, as part of InfoNCE's own kernels.
//!
//! Logits are distances with a sign, a temperature and a number for each column. Recorded is a chain
//! that stores them, and one that multiplies their gradient; neither is needed. Nor is a kernel for
//! the gradient, if the distances are MRN's by pairs: their gradient begins with one that reads it.
//! Then no kernel is needed for their log-sum-exps either: the one that makes the distances makes
//! those of parts. The numbers are the same either way.

use std::ops::Range;
use std::rc::Rc;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use, View};
use crate::ops::arguments;
use crate::ops::chain::{Op, member};
use crate::ops::info_nce::{Logits, gradient, parts, sums};
use crate::ops::residual::pairs;
use crate::ops::residual_gradient::operands;

/// The launches without those that InfoNCE's kernels can do the work of, and without its gradient
/// where another can compute that.
pub(crate) fn join_logits(launches: Vec<Launch>) -> Vec<Launch> {
    let mut joining = Joining { launches: launches.into_iter().map(Some).collect() };
    for index in 0..joining.launches.len() {
        if joining.is_chain(index) && !joining.join_before(index) {
            joining.join_after(index);
        }
    }
    for index in 0..joining.launches.len() {
        joining.join_gradient(index);
    }
    for index in 0..joining.launches.len() {
        joining.join_sums(index);
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
    /// Lets the first kernel of MRN's gradient compute InfoNCE's, where that was computed.
    fn join_gradient(&mut self, index: usize) -> Option<()> {
        let launch = self.launches[index].as_ref();
        let launch = launch.filter(|launch| launch.kernel == "residual_operands")?;
        let Argument::Matrix(grad, _) = &launch.arguments[operands::GRADIENT] else { return None };
        let number = grad.buffer.number();
        let writes = |launch: &Option<Launch>| launch.as_ref().is_some_and(|l| l.writes(number));
        let maker = self.launches[..index].iter().rposition(writes)?;
        let made = self.launches[maker].as_ref();
        let made = made.filter(|made| made.kernel == "info_nce_gradient")?;
        // The last of what it stores.
        let is_scaled = matches!(made.arguments[gradient::SCALED], Argument::Matrix(..));
        let last = if is_scaled { gradient::SCALED } else { gradient::RESULT };
        let size = made.arguments[gradient::SIZE].unsigned();
        let sizes = [operands::ROWS, operands::COLUMNS];
        let is_all = grad.offset == 0
            && made.arguments[last].is_at(number, 0)
            && sizes.iter().all(|&place| launch.arguments[place].unsigned() == size);
        // It comes where InfoNCE's was.
        if !is_all || !self.can_move(launch, maker + 1..index, Some(number)) {
            return None;
        }
        let mut members = made.arguments[..=gradient::FACTOR].to_vec();
        members.extend(arguments![1_u32, 1_u32]);
        let mut launch = self.launches[index].take()?;
        launch.arguments[operands::GRADIENT] = Argument::Nothing;
        launch.arguments[operands::INFO_NCE] = Argument::Struct(members, operands::INFO_NCE_BYTES);
        self.launches[maker] = Some(launch);
        Some(())
    }

    /// Lets the kernel of MRN's distances make the log-sum-exps of parts of the logits, if all who
    /// read them can put these together.
    fn join_sums(&mut self, index: usize) -> Option<()> {
        let launch = self.launches[index].as_ref();
        let launch = launch.filter(|launch| launch.kernel == "info_nce_sums")?;
        let Argument::Struct(logits, _) = &launch.arguments[0] else { return None };
        let [Argument::Matrix(x, _), column, scale, shift] = &logits[..] else { return None };
        let number = x.buffer.number();
        let writes = |launch: &Option<Launch>| launch.as_ref().is_some_and(|l| l.writes(number));
        let maker = self.launches[..index].iter().rposition(writes)?;
        let made = self.launches[maker].as_ref();
        let made = made.filter(|made| made.module == Module::ResidualPairs)?;
        let size = launch.arguments[sums::SIZE].unsigned()?;
        let sizes = [pairs::ROWS, pairs::COLUMNS];
        let is_all = x.offset == 0
            && made.arguments[pairs::DISTANCES].is_at(number, 0)
            && sizes.iter().all(|&place| made.arguments[place].unsigned() == Some(size));
        // It comes where the log-sum-exps were made, since what is added to columns may be late.
        if !is_all || !self.can_move(made, maker + 1..index, None) {
            return None;
        }
        let [rows, columns] =
            [sums::ROWS, sums::COLUMNS].map(|place| launch.arguments[place].clone());
        let is_sum = |number| rows.is_at(number, 0) || columns.is_at(number, 0);
        let reads = |launch: &Launch| {
            let mut found = false;
            launch.each_use(|buffer, _| found |= is_sum(buffer.number()));
            found
        };
        let others = (0..self.launches.len()).filter(|&other| other != index);
        let readers = others.filter(|&other| self.launches[other].as_ref().is_some_and(reads));
        let readers = readers.collect::<Vec<_>>();
        let [column, scale, shift] = [column, scale, shift].map(Argument::clone);
        let mut of = |reader: usize| self.launches[reader].as_mut().and_then(parts_of).is_some();
        if !readers.iter().all(|&reader| of(reader)) {
            return None;
        }
        for reader in readers {
            if let Some(found) = self.launches[reader].as_mut().and_then(parts_of) {
                found.clone_from_slice(&parts(size as usize).map(|count| (count as u32).into()));
            }
        }
        let mut launch = self.launches[maker].take()?;
        let members = vec![column, rows, columns, scale, shift];
        launch.arguments[pairs::SUMS] = Argument::Struct(members, pairs::SUMS_BYTES);
        self.launches[index] = Some(launch);
        Some(())
    }

    /// Whether a launch can come elsewhere with regard to those between: they do not write what it
    /// reads, but for `except`, and do not use what it writes.
    fn can_move(&self, launch: &Launch, between: Range<usize>, except: Option<u64>) -> bool {
        let mut can = true;
        launch.each_use(|buffer, use_| {
            let number = buffer.number();
            can &= self.launches[between.clone()].iter().flatten().all(|other| match use_ {
                Use::Read => Some(number) == except || !other.writes(number),
                _ => other.uses(number) == 0,
            });
        });
        can
    }
}

/// In how many parts a launch has log-sum-exps of rows and of columns, if it can have some.
fn parts_of(launch: &mut Launch) -> Option<&mut [Argument]> {
    let members = match launch.kernel {
        "info_nce" => return launch.arguments.get_mut(sums::PARTS..sums::PARTS + 2),
        "residual_operands" => launch.arguments.get_mut(operands::INFO_NCE)?,
        _ => return None,
    };
    let Argument::Struct(members, _) = members else { return None };
    members.get_mut(gradient::PARTS..gradient::PARTS + 2)
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
mod tests {
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

    fn gradient_of(logits: &CudaTensor, dl: &CudaTensor) -> Launch {
        let logits = Logits::new(logits.read()).argument();
        let [rows, columns, dy] = [(); 3].map(|()| tensor([4, 1]).read());
        let nothing = Argument::Nothing;
        let arguments =
            arguments![logits, rows, columns, dy, dl.write(), nothing, 1.0_f32, 4_u32, dl.count()];
        launch(Module::InfoNce, "info_nce_gradient", arguments)
    }

    fn other(x: &CudaTensor) -> Launch {
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

    /// The first kernel of MRN's gradient, of `n` points a side.
    fn operands_of(grad: &CudaTensor, n: u32) -> Launch {
        let [norms, args] = [(); 2].map(|()| tensor([4, 4]).read());
        let mut arguments = arguments![grad.read(), norms, args];
        arguments.extend([(); 8].map(|()| tensor([4, 4]).write()));
        arguments.extend(arguments![
            n,
            n,
            0.0_f32,
            Argument::Struct(Vec::new(), operands::INFO_NCE_BYTES)
        ]);
        launch(Module::ResidualGradient, "residual_operands", arguments)
    }

    #[test]
    fn gradients_of_distances_begin_with_that_of_infonce() {
        let [logits, dl, scaled] = [(); 3].map(|()| tensor([4, 4]));
        let scale = Chain::load(&dl, dl.shape).affine(-2.0, 0.0).launch(&scaled, 1);
        let launches = vec![
            gradient_of(&logits, &dl),
            other(&dl),
            scale,
            operands_of(&scaled, 4),
            other(&scaled),
        ];
        let launches = join_logits(launches);
        let kernels = launches.iter().map(|launch| launch.kernel).collect::<Vec<_>>();
        assert_eq!(kernels, ["residual_operands", "other", "other"]);
        let arguments = &launches[0].arguments;
        assert!(matches!(arguments[operands::GRADIENT], Argument::Nothing));
        let Argument::Struct(members, _) = &arguments[operands::INFO_NCE] else { panic!() };
        assert!(members[gradient::RESULT].is_at(dl.view.buffer.number(), 0));
        assert!(members[gradient::SCALED].is_at(scaled.view.buffer.number(), 0));
        assert!([&dl, &scaled].iter().all(|x| launches[0].writes(x.view.buffer.number())));
    }

    /// The kernel of MRN's distances, of `n` points a side.
    fn pairs_of(distances: &CudaTensor, n: u32) -> Launch {
        let [x, y] = [(); 2].map(|()| tensor([4, 8]).read());
        let [norms, args] = [(); 2].map(|()| tensor([4, 4]).write());
        let none = Argument::Struct(Vec::new(), pairs::SUMS_BYTES);
        let arguments =
            arguments![x, y, distances.write(), norms, args, n, n, 0_u32, 0.0_f32, none];
        launch(Module::ResidualPairs, "residual_pairs_small", arguments)
    }

    /// Distances, a number for each column, and InfoNCE of what they make, with its gradient.
    fn step(n: u32, reads_between: bool, reads_sums: bool) -> (Vec<Launch>, [CudaTensor; 3]) {
        let [d, dl] = [(); 2].map(|()| tensor([4, 4]));
        let [column, rows, columns, loss] = [(); 4].map(|()| tensor([1, 4]));
        let logits =
            || Logits { x: d.read(), column: column.read(), scale: -1.0, shift: 0.5 }.argument();
        let info_nce = |kernel, arguments| launch(Module::InfoNce, kernel, arguments);
        let mut launches = vec![pairs_of(&d, n)];
        launches.extend(reads_between.then(|| other(&d)));
        launches.extend([
            launch(Module::Reduce, "other", arguments![column.write()]),
            info_nce(
                "info_nce_sums",
                arguments![logits(), rows.write(), columns.write(), 4_u32, 1_u32],
            ),
            info_nce(
                "info_nce",
                arguments![
                    logits(),
                    rows.read(),
                    columns.read(),
                    loss.write(),
                    4_u32,
                    1_u32,
                    1_u32
                ],
            ),
            info_nce(
                "info_nce_gradient",
                arguments![
                    logits(),
                    rows.read(),
                    columns.read(),
                    loss.read(),
                    dl.write(),
                    Argument::Nothing,
                    1.0_f32,
                    4_u32,
                    16_u32
                ],
            ),
            operands_of(&dl, 4),
        ]);
        launches.extend(reads_sums.then(|| other(&rows)));
        (join_logits(launches), [column, rows, columns])
    }

    #[test]
    fn log_sum_exps_are_made_with_the_distances() {
        let (launches, [column, rows, columns]) = step(4, false, false);
        let kernels = launches.iter().map(|launch| launch.kernel).collect::<Vec<_>>();
        let [other, pairs, info_nce, operands] = kernels[..] else { panic!("{kernels:?}") };
        assert_eq!([other, info_nce, operands], ["other", "info_nce", "residual_operands"]);
        assert_eq!(pairs, "residual_pairs_small");
        let Argument::Struct(members, _) = &launches[1].arguments[pairs::SUMS] else { panic!() };
        for (member, tensor) in members.iter().zip([column, rows, columns]) {
            assert!(member.is_at(tensor.view.buffer.number(), 0));
        }
        assert!(matches!(members[3..], [Argument::Float(-1.0), Argument::Float(0.5)]));
        for mut launch in launches.into_iter().skip(2) {
            let found = parts_of(&mut launch).unwrap();
            assert!(found.iter().all(|count| count.unsigned() == Some(1)));
        }
        assert_eq!(parts(256), [16, 8]);
        assert_eq!(parts(33), [3, 2]);
    }

    #[test]
    fn log_sum_exps_that_others_read_or_of_something_else_have_their_own_kernel() {
        assert_eq!(step(4, false, false).0.len(), 4);
        assert_eq!(step(2, false, false).0.len(), 5);
        assert_eq!(step(4, true, false).0.len(), 6);
        assert_eq!(step(4, false, true).0.len(), 6);
    }

    #[test]
    fn gradients_of_other_sizes_or_of_something_else_are_read() {
        let [logits, dl] = [(); 2].map(|()| tensor([4, 4]));
        let count = |launches| join_logits(launches).len();
        assert_eq!(count(vec![gradient_of(&logits, &dl), operands_of(&dl, 4)]), 1);
        assert_eq!(count(vec![gradient_of(&logits, &dl), operands_of(&dl, 2)]), 2);
        let changed = launch(Module::Reduce, "other", arguments![dl.update()]);
        assert_eq!(count(vec![gradient_of(&logits, &dl), changed, operands_of(&dl, 4)]), 3);
        // A norm that is there only later.
        let mut late = operands_of(&dl, 4);
        let norms = tensor([4, 4]);
        late.arguments[1] = norms.read();
        let makes = launch(Module::Reduce, "other", arguments![norms.write()]);
        assert_eq!(count(vec![gradient_of(&logits, &dl), makes, late]), 3);
    }
}
