//! InfoNCE's work as part of the kernels of MRN's distances by pairs.
//!
//! InfoNCE's gradient needs no kernel if it is that of such distances: their gradient begins with a
//! kernel that reads it. Nor do the logits' log-sum-exps: the kernel that makes the distances makes
//! those of parts. The numbers are the same either way.

use std::ops::Range;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use};
use crate::ops::arguments;
use crate::ops::info_nce::{gradient, parts, sums};
use crate::ops::residual::pairs;
use crate::ops::residual_gradient::operands;

/// The launches without those of InfoNCE that the kernels of MRN's distances can do the work of.
pub(crate) fn join_distances(launches: Vec<Launch>) -> Vec<Launch> {
    let mut joining = Joining { launches: launches.into_iter().map(Some).collect() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::testing::{launch, tensor};
    use crate::logits::join_logits;
    use crate::logits::tests::{gradient_of, other};
    use crate::ops::chain::Chain;
    use crate::ops::info_nce::Logits;
    use crate::tensor::CudaTensor;

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
        let launches = join_distances(join_logits(launches));
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
        (join_distances(join_logits(launches)), [column, rows, columns])
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
        let count = |launches| join_distances(join_logits(launches)).len();
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
