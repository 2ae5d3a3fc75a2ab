//! Chains of a recorded step that follow each other become one kernel.
//!
//! A chain that begins with the numbers another one ends with goes on where that one ends. What
//! lies between is stored only if somebody else reads it. The numbers are the same either way.

use std::rc::Rc;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use, View};
use crate::ops::chain::{Op, STEPS, member};

/// The launches with chains joined, in an order that is as good as theirs.
pub(crate) fn join_chains(launches: Vec<Launch>) -> Vec<Launch> {
    let mut joining = Joining { launches: launches.into_iter().map(Some).collect() };
    for late in 0..joining.launches.len() {
        // A chain that stays at `late` may have others before it.
        while joining.join_before(late) {}
    }
    joining.launches.into_iter().flatten().collect()
}

struct Joining {
    launches: Vec<Option<Launch>>,
}

impl Joining {
    /// Joins the chain at `late` with the one it goes on from, if that can be. Whether it did and
    /// is still there.
    fn join_before(&mut self, late: usize) -> bool {
        for begin in [Begin::First, Begin::Second] {
            let Some(early) = self.maker(late, begin) else { continue };
            let Some(place) = self.place(early, late, begin) else { continue };
            let (first, second) = (self.launches[early].take(), self.launches[late].take());
            let (Some(mut first), Some(second)) = (first, second) else { return false };
            if self.is_unread(&first, &second, begin) {
                drop_end(&mut first);
            }
            self.launches[place] = Some(joined(first, second, begin));
            return place == late;
        }
        false
    }

    /// The chain before `late` that ends with what that one begins with.
    fn maker(&self, late: usize, begin: Begin) -> Option<usize> {
        let second = self.launches[late].as_ref()?;
        let from = begin.of(second)?;
        let number = from.buffer.number();
        let early = (0..late).rev().find(|&index| self.writes(index, number))?;
        let first = self.launches[early].as_ref()?;
        let (steps, others) = (steps_of(first)?, steps_of(second)?);
        let ends_there = match members(steps.last()?)?.get(member::OUT)? {
            Argument::Matrix(end, _) => end.buffer.number() == number && end.offset == from.offset,
            _ => false,
        };
        let fits = steps.len() + others.len() - 1 <= STEPS.0 && sizes(first) == sizes(second);
        (ends_there && fits).then_some(early)
    }

    /// Where the two can be one kernel: where the first is, if all that the second reads is there
    /// by then, or where the second is, if nobody else uses what the first stores.
    fn place(&self, early: usize, late: usize, begin: Begin) -> Option<usize> {
        let (first, second) = (self.launches[early].as_ref()?, self.launches[late].as_ref()?);
        let [stored, made] =
            [first, second].map(|launch| numbers(launch, |use_| use_ != Use::Read));
        let mut besides = numbers(second, |use_| use_ == Use::Read);
        let from = begin.of(second)?.buffer.number();
        besides.remove(besides.iter().position(|&number| number == from)?);
        if besides.iter().any(|number| stored.contains(number)) {
            return None;
        }
        let mut between = early + 1..late;
        let is_there = between.clone().all(|index| {
            !besides.iter().any(|&number| self.writes(index, number))
                && !made.iter().any(|&number| self.uses(index, number))
        });
        if is_there {
            return Some(early);
        }
        let read = numbers(first, |use_| use_ == Use::Read);
        let stays = between.all(|index| !read.iter().any(|&number| self.writes(index, number)));
        let mut others = (0..self.launches.len()).filter(|&index| index != early && index != late);
        let is_alone = others.all(|index| !stored.iter().any(|&number| self.uses(index, number)));
        (is_alone && stays).then_some(late)
    }

    /// Whether nobody but the two, which are taken out, has what lies between them.
    fn is_unread(&self, first: &Launch, second: &Launch, begin: Begin) -> bool {
        let Some(View { buffer, .. }) = begin.of(second) else { return false };
        let number = buffer.number();
        let holders = [first, second].map(|launch| numbers(launch, |_| true));
        let holders = holders.iter().flatten().filter(|&&other| other == number).count();
        !buffer.is_placed()
            && Rc::strong_count(buffer) == holders
            && (0..self.launches.len()).all(|index| !self.uses(index, number))
    }

    fn writes(&self, index: usize, number: u64) -> bool {
        self.any_use(index, |other, use_| other == number && use_ != Use::Read)
    }

    fn uses(&self, index: usize, number: u64) -> bool {
        self.any_use(index, |other, _| other == number)
    }

    fn any_use(&self, index: usize, is_it: impl Fn(u64, Use) -> bool) -> bool {
        let mut found = false;
        if let Some(launch) = &self.launches[index] {
            launch.each_use(|buffer, use_| found |= is_it(buffer.number(), use_));
        }
        found
    }
}

/// What a chain can go on from: the matrix of its first step, or that of its second one if it is a
/// function of both.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    First,
    Second,
}

impl Begin {
    /// The matrix, if it is of the chain's own shape.
    fn of(self, launch: &Launch) -> Option<&View> {
        let step = match (self, &steps_of(launch)?[..]) {
            (Self::First, [first, ..]) => first,
            (Self::Second, [_, second, ..]) if is_op(second, Op::Zip) => second,
            _ => return None,
        };
        match members(step)?.first()? {
            Argument::Matrix(view, Use::Read) if is_whole(step, sizes(launch)) => Some(view),
            _ => None,
        }
    }
}

/// The first chain no longer stores what it ends with.
fn drop_end(first: &mut Launch) {
    if let Some(Argument::Struct(steps, _)) = first.arguments.first_mut()
        && let Some(Argument::Struct(last, _)) = steps.last_mut()
    {
        last[member::OUT] = Argument::Nothing;
    }
}

/// The first chain, going on as the second.
fn joined(mut first: Launch, mut second: Launch, begin: Begin) -> Launch {
    if let [Argument::Struct(steps, _), count, ..] = &mut first.arguments[..]
        && let Some(Argument::Struct(others, _)) = second.arguments.first_mut()
    {
        let load = others.remove(0);
        if let (Begin::Second, Argument::Struct(load, _)) = (begin, load)
            && let Some(Argument::Struct(zip, _)) = others.first_mut()
        {
            // The right number is there, and the left one is loaded.
            for place in [member::X, member::X_ROW, member::X_COLUMN] {
                zip[place] = load[place].clone();
            }
            zip[member::OP] = Argument::Signed(Op::ZipRight as i32);
        }
        steps.append(others);
        *count = Argument::Unsigned(steps.len() as u32);
    }
    first
}

fn steps_of(launch: &Launch) -> Option<&Vec<Argument>> {
    match launch.arguments.first()? {
        Argument::Struct(steps, _) if launch.module == Module::Chain => Some(steps),
        _ => None,
    }
}

/// Columns and numbers of what a chain stores.
fn sizes(launch: &Launch) -> [Option<u32>; 2] {
    [2, 3].map(|place| launch.arguments.get(place).and_then(Argument::unsigned))
}

fn members(step: &Argument) -> Option<&[Argument]> {
    match step {
        Argument::Struct(members, _) => Some(members),
        _ => None,
    }
}

fn is_op(step: &Argument, op: Op) -> bool {
    let found = members(step).and_then(|members| members.get(member::OP));
    matches!(found, Some(Argument::Signed(code)) if *code == op as i32)
}

/// Whether a step reads a matrix of the chain's own shape, number by number.
fn is_whole(step: &Argument, [columns, count]: [Option<u32>; 2]) -> bool {
    let (Some(members), Some(columns), Some(count)) = (members(step), columns, count) else {
        return false;
    };
    let [row, column] = [member::X_ROW, member::X_COLUMN]
        .map(|place| members.get(place).and_then(Argument::unsigned));
    (count == columns || row == Some(columns)) && (columns == 1 || column == Some(1))
}

/// The buffers that a launch uses in such a way.
fn numbers(launch: &Launch, is_wanted: impl Fn(Use) -> bool) -> Vec<u64> {
    let mut found = Vec::new();
    launch.each_use(|buffer, use_| {
        if is_wanted(use_) {
            found.push(buffer.number());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use cm_nn::Zip;

    use super::*;
    use crate::launch::testing::tensor;
    use crate::ops::chain::Chain;
    use crate::tensor::CudaTensor;

    /// The steps of each launch, and which of them store.
    fn stored(launches: &[Launch]) -> Vec<Vec<bool>> {
        let is_stored = |step: &Argument| {
            members(step).is_some_and(|all| matches!(all[member::OUT], Argument::Matrix(..)))
        };
        launches.iter().map(|l| steps_of(l).unwrap().iter().map(is_stored).collect()).collect()
    }

    /// A kernel that is no chain and turns `x` into `y`.
    fn other(x: &CudaTensor, y: &CudaTensor) -> Launch {
        let launch = Chain::load(x, y.shape).launch(y, 1);
        Launch { module: Module::Reduce, kernel: "other", ..launch }
    }

    #[test]
    fn what_follows_is_one_kernel_and_stores_only_its_end() {
        let (x, y) = (tensor([4, 3]), tensor([4, 3]));
        let [a, b] = [(); 2].map(|()| tensor([4, 3]));
        let launches = vec![
            Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
            Chain::load(&a, x.shape).map(1, [0.0; 2]).launch(&b, 1),
            Chain::load(&b, x.shape).affine(3.0, 0.0).launch(&y, 1),
        ];
        drop([a, b]);
        assert_eq!(stored(&join_chains(launches)), [[false, false, false, true]]);
    }

    #[test]
    fn what_others_read_is_stored() {
        let (x, a, y, z) = (tensor([4, 3]), tensor([4, 3]), tensor([4, 3]), tensor([4, 3]));
        let launches = || {
            vec![
                Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
                other(&a, &z),
                Chain::load(&a, x.shape).map(1, [0.0; 2]).launch(&y, 1),
            ]
        };
        let joined = join_chains(launches());
        assert_eq!(joined.len(), 2);
        assert_eq!(stored(&joined[..1]), [[false, true, true]]);
        // Also what somebody holds on to.
        let mut alone = launches();
        alone.remove(1);
        assert_eq!(stored(&join_chains(alone)), [[false, true, true]]);
    }

    #[test]
    fn a_function_of_two_goes_on_from_either() {
        let (x, y, z) = (tensor([4, 3]), tensor([4, 1]), tensor([4, 3]));
        let a = tensor([4, 3]);
        let launches = vec![
            Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
            Chain::load(&y, z.shape).zip(Zip::Sub, &a).launch(&z, 1),
        ];
        drop(a);
        let joined = join_chains(launches);
        assert_eq!(stored(&joined), [[false, false, true]]);
        let last = steps_of(&joined[0]).unwrap().last().unwrap();
        assert!(is_op(last, Op::ZipRight));
        let Argument::Matrix(view, _) = &members(last).unwrap()[member::X] else { panic!() };
        assert_eq!(view.buffer.number(), y.view.buffer.number());
    }

    #[test]
    fn gradients_of_both_sides_go_on_from_what_they_are_of() {
        let [x, y, dx, dy, dz] = [(); 5].map(|()| tensor([4, 3]));
        let scalar = tensor([1, 1]);
        let launches = vec![
            Chain::load(&scalar, dz.shape).affine(2.0, 1.0).launch(&dz, 1),
            Chain::load(&dz, dz.shape).zip_gradients(Zip::Max, [&x, &y], &dx).launch(&dy, 1),
        ];
        drop(dz);
        assert_eq!(stored(&join_chains(launches)), [[false, false, true, true]]);
    }

    #[test]
    fn a_repeated_matrix_and_one_that_is_read_twice_stay_apart() {
        let (x, a, y) = (tensor([4, 1]), tensor([4, 1]), tensor([4, 3]));
        let repeated = vec![
            Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
            Chain::load(&a, y.shape).affine(1.0, 1.0).launch(&y, 1),
        ];
        assert_eq!(join_chains(repeated).len(), 2);
        let z = tensor([4, 1]);
        let twice = vec![
            Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
            Chain::load(&a, a.shape).zip(Zip::Mul, &a).launch(&z, 1),
        ];
        assert_eq!(join_chains(twice).len(), 2);
    }

    #[test]
    fn a_chain_waits_for_another_matrix_only_if_nobody_else_waits_for_it() {
        let [x, a, b, late, y, z] = [(); 6].map(|()| tensor([4, 3]));
        let launches = |with_reader: bool| {
            let mut launches = vec![
                Chain::load(&x, x.shape).affine(2.0, 1.0).launch(&a, 1),
                other(&b, &late),
                Chain::load(&a, a.shape).zip(Zip::Mul, &late).launch(&y, 1),
            ];
            launches.extend(with_reader.then(|| other(&a, &z)));
            launches
        };
        let alone = join_chains(launches(false));
        assert_eq!(
            alone.iter().map(|launch| launch.kernel).collect::<Vec<_>>(),
            ["other", "chain"]
        );
        assert_eq!(join_chains(launches(true)).len(), 4);
    }
}
