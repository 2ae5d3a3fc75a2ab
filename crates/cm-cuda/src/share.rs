//! Kernels of a recorded step that compute the same become one, and those whose results nobody
//! reads are left out.
//!
//! Two losses that evaluate the same network at the same rows, or features that several networks
//! see, are recorded as often as they are asked for. The numbers are the same either way.

use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use, View};
use crate::memory::Buffer;

/// The launches without those that are not needed.
pub(crate) fn share(launches: Vec<Launch>) -> Vec<Launch> {
    let mut sharing = Sharing::new(&launches);
    for launch in launches {
        sharing.push(launch);
    }
    let Sharing { launches, is_held, .. } = sharing;
    without_unread(launches, &is_held)
}

struct Sharing {
    /// Of each buffer, how many launches write to it, and whether others hold on to it.
    writers: HashMap<u64, usize>,
    is_held: HashMap<u64, bool>,
    /// How often each buffer was written so far.
    versions: HashMap<u64, usize>,
    /// Buffers whose numbers are in another one.
    same: HashMap<u64, Rc<Buffer>>,
    /// Where the launch is that does what a text says.
    known: HashMap<String, usize>,
    launches: Vec<Launch>,
}

impl Sharing {
    fn new(launches: &[Launch]) -> Self {
        let (mut writers, mut uses) = (HashMap::new(), HashMap::<u64, (usize, usize)>::new());
        for launch in launches {
            launch.each_use(|buffer, what| {
                *writers.entry(buffer.number()).or_default() += usize::from(what != Use::Read);
                let (count, _) = uses.get(&buffer.number()).copied().unwrap_or_default();
                uses.insert(buffer.number(), (count + 1, Rc::strong_count(buffer)));
            });
        }
        let is_held = uses.into_iter().map(|(number, (count, all))| (number, all > count));
        Self {
            writers,
            is_held: is_held.collect(),
            versions: HashMap::new(),
            same: HashMap::new(),
            known: HashMap::new(),
            launches: Vec::new(),
        }
    }

    fn push(&mut self, mut launch: Launch) {
        launch.arguments.iter_mut().for_each(|argument| self.rename(argument));
        let key = self.key(&launch);
        let first = key.as_ref().and_then(|key| self.known.get(key).copied());
        if let Some(first) = first
            && self.can_be_left_out(&launch)
        {
            let (ours, theirs) = (&launch.arguments, &mut self.launches[first].arguments);
            theirs.iter_mut().zip(ours).for_each(|(kept, left)| merge(kept, left, &mut self.same));
            return;
        }
        launch.each_use(|buffer, what| {
            if what != Use::Read {
                *self.versions.entry(buffer.number()).or_default() += 1;
            }
        });
        if let Some(key) = key.filter(|_| first.is_none()) {
            self.known.insert(key, self.launches.len());
        }
        self.launches.push(launch);
    }

    /// What is read where it is by now.
    fn rename(&self, argument: &mut Argument) {
        match argument {
            Argument::Matrix(view, Use::Read) | Argument::Pointer(view, Use::Read) => {
                if let Some(buffer) = self.same.get(&view.buffer.number()) {
                    view.buffer = buffer.clone();
                }
            }
            Argument::Struct(members, _) => members.iter_mut().for_each(|one| self.rename(one)),
            _ => {}
        }
    }

    /// What the launch does, none if it must not be shared: it changes what is there, or what it
    /// writes is written again.
    fn key(&self, launch: &Launch) -> Option<String> {
        let Launch { module, kernel, shape, .. } = launch;
        let mut key = format!("{module:?} {kernel} {shape:?}");
        let has_options = matches!(module, Module::Warpgroups(_) | Module::Operands(_));
        launch.arguments.iter().try_for_each(|one| self.describe(one, has_options, &mut key))?;
        Some(key)
    }

    fn describe(&self, argument: &Argument, has_options: bool, key: &mut String) -> Option<()> {
        let done = match argument {
            Argument::Matrix(view, Use::Read) | Argument::Pointer(view, Use::Read) => {
                let number = view.buffer.number();
                let version = self.versions.get(&number).copied().unwrap_or_default();
                write!(key, " {number}.{version}+{}", view.offset)
            }
            Argument::Matrix(View { buffer, offset: 0 }, Use::Write)
                if self.writers.get(&buffer.number()) == Some(&1) =>
            {
                // Results that such kernels may leave out do not change the others.
                if has_options { write!(key, " -") } else { write!(key, " *") }
            }
            Argument::Matrix(..) | Argument::Pointer(..) => return None,
            Argument::Nothing => write!(key, " -"),
            Argument::Unsigned(x) => write!(key, " {x}"),
            Argument::Signed(x) => write!(key, " {x}"),
            Argument::Float(x) => write!(key, " {}", x.to_bits()),
            Argument::Struct(members, _) => {
                members.iter().try_for_each(|one| self.describe(one, has_options, key))?;
                write!(key, ";")
            }
        };
        done.ok()
    }

    /// Whether nobody needs its results where they are.
    fn can_be_left_out(&self, launch: &Launch) -> bool {
        let mut can = true;
        launch.each_use(|buffer, what| {
            can &= what == Use::Read || is_ours(buffer, &self.is_held);
        });
        can
    }
}

/// Whether a buffer is of use to the recorded launches alone.
fn is_ours(buffer: &Buffer, is_held: &HashMap<u64, bool>) -> bool {
    !buffer.is_placed() && is_held.get(&buffer.number()) == Some(&false)
}

/// The kept launch writes what either does.
fn merge(kept: &mut Argument, left: &Argument, same: &mut HashMap<u64, Rc<Buffer>>) {
    match (kept, left) {
        (Argument::Matrix(kept, Use::Write), Argument::Matrix(left, Use::Write)) => {
            same.insert(left.buffer.number(), kept.buffer.clone());
        }
        (kept @ Argument::Nothing, left @ Argument::Matrix(_, Use::Write)) => *kept = left.clone(),
        (Argument::Struct(kept, _), Argument::Struct(left, _)) => {
            kept.iter_mut().zip(left).for_each(|(kept, left)| merge(kept, left, same));
        }
        _ => {}
    }
}

/// The launches whose results somebody reads, or that change what others keep.
fn without_unread(launches: Vec<Launch>, is_held: &HashMap<u64, bool>) -> Vec<Launch> {
    let mut is_read = HashMap::<u64, ()>::new();
    let mut needed = Vec::new();
    for launch in launches.into_iter().rev() {
        let mut is_needed = false;
        launch.each_use(|buffer, what| {
            let unread = what == Use::Write
                && is_ours(buffer, is_held)
                && !is_read.contains_key(&buffer.number());
            is_needed |= what != Use::Read && !unread;
        });
        if is_needed {
            launch.each_use(|buffer, what| {
                if what != Use::Write {
                    is_read.insert(buffer.number(), ());
                }
            });
            needed.push(launch);
        }
    }
    needed.reverse();
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::testing::tensor;
    use crate::ops::chain::Chain;
    use crate::tensor::CudaTensor;

    /// A kernel that turns `x` into `y`.
    fn step(x: &CudaTensor, y: &CudaTensor, scale: f32) -> Launch {
        Chain::load(x, y.shape).affine(scale, 1.0).launch(y, 1)
    }

    fn numbers(launch: &Launch, what: Use) -> Vec<u64> {
        let mut found = Vec::new();
        launch.each_use(|buffer, use_| {
            if use_ == what {
                found.push(buffer.number());
            }
        });
        found
    }

    #[test]
    fn the_same_of_the_same_is_computed_once() {
        let (x, y, z) = (tensor([4, 3]), tensor([4, 3]), tensor([4, 3]));
        let [a, b] = [(); 2].map(|()| tensor([4, 3]));
        let wanted = a.view.buffer.number();
        let launches =
            vec![step(&x, &a, 2.0), step(&x, &b, 2.0), step(&a, &y, 3.0), step(&b, &z, 4.0)];
        drop([a, b]);
        let shared = share(launches);
        assert_eq!(shared.len(), 3);
        assert_eq!(numbers(&shared[1], Use::Read), [wanted]);
        assert_eq!(numbers(&shared[2], Use::Read), [wanted]);
    }

    #[test]
    fn equal_results_make_later_launches_equal() {
        let (x, y) = (tensor([4, 3]), tensor([4, 3]));
        let [a, b, c, d] = [(); 4].map(|()| tensor([4, 3]));
        let sum = Chain::load(&c, y.shape).zip(cm_nn::Zip::Add, &d).launch(&y, 1);
        let launches =
            vec![step(&x, &a, 2.0), step(&x, &b, 2.0), step(&a, &c, 3.0), step(&b, &d, 3.0), sum];
        drop([a, b, c, d]);
        assert_eq!(share(launches).len(), 3);
    }

    #[test]
    fn other_numbers_other_versions_and_what_is_held_stay() {
        let (x, a, b) = (tensor([4, 3]), tensor([4, 3]), tensor([4, 3]));
        assert_eq!(share(vec![step(&x, &a, 2.0), step(&x, &b, 3.0)]).len(), 2);
        // Both are held.
        assert_eq!(share(vec![step(&x, &a, 2.0), step(&x, &b, 2.0)]).len(), 2);
        let (y, z) = (tensor([4, 3]), tensor([4, 3]));
        let [c, d] = [(); 2].map(|()| tensor([4, 3]));
        let launches = vec![
            step(&x, &c, 2.0),
            step(&a, &x, 1.0),
            step(&x, &d, 2.0),
            step(&c, &y, 1.0),
            step(&d, &z, 1.0),
        ];
        drop([c, d]);
        assert_eq!(share(launches).len(), 5);
    }

    #[test]
    fn what_nobody_reads_is_not_computed() {
        let (x, y) = (tensor([4, 3]), tensor([4, 3]));
        let [a, b] = [(); 2].map(|()| tensor([4, 3]));
        let launches = vec![step(&x, &a, 2.0), step(&a, &b, 2.0), step(&x, &y, 3.0)];
        drop([a, b]);
        assert_eq!(share(launches).len(), 1);
    }
}
