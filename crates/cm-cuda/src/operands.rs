//! What products on Hopper need of a matrix, as `kernels/operand.cuh` has it: operands, rounded and
//! laid out for them, and sums of its columns.
//!
//! In a recorded step each is made once. A product stores its result as the operands that
//! later ones ask for; what has its values before the step, as parameters do, is packed by the
//! step's first kernel; anything else by a kernel of its own.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use cm_nn::{Result, Shape};

use crate::Precision;
use crate::backend::CudaBackend;
use crate::compile::Module;
use crate::driver::LaunchShape;
use crate::launch::{Argument, Launch, Use};
use crate::memory::Buffer;
use crate::ops::arguments;
use crate::tensor::{CudaTensor, maybe_write};

/// What a product needs of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An operand whose rows are summed along.
    Rows,
    /// An operand whose columns are summed along.
    Columns,
    /// The sums of its columns, over 32 rows each.
    Sums,
}

/// Rows and columns of the squares that operands are made of.
pub(crate) const SIDE: usize = 64;
/// Threads of a block that packs one square.
pub(crate) const PACK_THREADS: u32 = 256;
/// Entries of `struct PackTable`, and bytes of one.
const ENTRIES: (usize, usize) = (24, 80);

/// The operands that a recording has made so far.
#[derive(Default)]
pub(crate) struct Operands {
    /// Matrices by the number of their buffer.
    known: HashMap<u64, Vec<Known>>,
    /// Buffers that the recording has written to.
    written: HashSet<u64>,
    /// Matrices that are packed before anything else.
    early: Vec<(CudaTensor, Forms)>,
}

/// Each [`Form`] that was asked for.
type Forms = [Option<CudaTensor>; 3];

/// A matrix whose operands are known, or that some kernel can store as operands.
struct Known {
    offset: usize,
    shape: Shape,
    maker: Maker,
    forms: Forms,
}

#[derive(Clone, Copy)]
enum Maker {
    /// A launch whose last three arguments are where it stores the forms.
    Launch(usize),
    /// An entry of `early`.
    Early(usize),
}

impl Operands {
    /// The buffer gets other values: what was made of it is no longer its operand.
    pub(crate) fn forget(&mut self, buffer: &Rc<Buffer>) {
        self.known.remove(&buffer.number());
        self.written.insert(buffer.number());
    }

    fn find(&mut self, x: &CudaTensor) -> Option<&mut Known> {
        let known = self.known.get_mut(&x.view.buffer.number())?;
        known.iter_mut().find(|known| known.offset == x.view.offset && known.shape == x.shape)
    }

    fn note(&mut self, x: &CudaTensor, maker: Maker) {
        let (offset, shape) = (x.view.offset, x.shape);
        let known = Known { offset, shape, maker, forms: Forms::default() };
        self.known.entry(x.view.buffer.number()).or_default().push(known);
    }

    /// Lets the kernel that can store `from` as operands store `to` as such instead, if nobody has
    /// asked for the former.
    pub(crate) fn pass_on(&mut self, from: &CudaTensor, to: &CudaTensor) -> bool {
        let Some(known) = self.find(from) else { return true };
        if known.forms.iter().any(Option::is_some) {
            return false;
        }
        let maker = known.maker;
        if let Some(known) = self.known.get_mut(&from.view.buffer.number()) {
            known.retain(|known| known.offset != from.view.offset || known.shape != from.shape);
        }
        self.note(to, maker);
        true
    }

    /// Whether the matrix has its values before the step.
    fn is_early(&self, x: &CudaTensor) -> bool {
        let buffer = &x.view.buffer;
        buffer.is_placed() && !self.written.contains(&buffer.number())
    }

    /// The launches of a step, those that pack early operands first.
    pub(crate) fn with_early(self, backend: &CudaBackend, launches: Vec<Launch>) -> Vec<Launch> {
        let tables = tables(&self.early).into_iter().map(|entries| {
            let (mut members, mut blocks) = (Vec::new(), 0);
            for (x, forms) in entries {
                members.push(x.read());
                members.extend(forms.iter().map(|form| maybe_write(form.as_ref())));
                members.extend(arguments![x.shape[0] as i32, x.shape[1] as i32, blocks, 0_u32]);
                blocks += squares(x.shape);
            }
            let table = Argument::Struct(members, ENTRIES.0 * ENTRIES.1);
            let blocks = [blocks, 1, backend.replicas() as u32];
            Launch {
                module: Module::Operands(backend.precision()),
                kernel: "pack_all",
                shape: LaunchShape { blocks, threads: PACK_THREADS, shared: 0, cluster: 1 },
                arguments: arguments![table, entries.len() as u32],
            }
        });
        tables.chain(launches).collect()
    }
}

impl CudaBackend {
    /// A form of the matrix: the one that the recording has, or a new one.
    pub(crate) fn operand(&self, x: &CudaTensor, form: Form) -> Result<CudaTensor> {
        let [rows, columns] = x.shape.map(|size| size.next_multiple_of(SIDE));
        let operand = self.new_tensor(match (form, self.precision()) {
            (Form::Sums, _) => [rows / 32, x.shape[1]],
            (_, Precision::Bf16) => [rows, columns / 2],
            _ => [rows, columns],
        })?;
        let mut recorder = self.recorder().borrow_mut();
        let Some(recorder) = recorder.as_mut() else {
            let mut forms = Forms::default();
            forms[form as usize] = Some(operand.clone());
            self.device().launch(&self.pack(x, &forms))?;
            return Ok(operand);
        };
        if recorder.operands.find(x).is_none() {
            let maker = if recorder.operands.is_early(x) {
                let early = &mut recorder.operands.early;
                early.push((self.stop(x), Forms::default()));
                Maker::Early(early.len() - 1)
            } else {
                recorder.push(self.pack(x, &Forms::default()));
                Maker::Launch(recorder.launches.len() - 1)
            };
            recorder.operands.note(x, maker);
        }
        let Some(known) = recorder.operands.find(x) else { return Ok(operand) };
        if let Some(operand) = &known.forms[form as usize] {
            return Ok(operand.clone());
        }
        known.forms[form as usize] = Some(operand.clone());
        match known.maker {
            Maker::Early(entry) => {
                recorder.operands.early[entry].1[form as usize] = Some(operand.clone());
            }
            Maker::Launch(index) => {
                let arguments = &mut recorder.launches[index].arguments;
                let place = arguments.len() - 3 + form as usize;
                arguments[place] = operand.write();
            }
        }
        Ok(operand)
    }

    /// Says that the last kernel, if it was recorded, can store its result `y` as operands.
    pub(crate) fn note_maker(&self, y: &CudaTensor) {
        if let Some(recorder) = self.recorder().borrow_mut().as_mut() {
            let last = recorder.launches.len() - 1;
            recorder.operands.note(y, Maker::Launch(last));
        }
    }

    fn pack(&self, x: &CudaTensor, forms: &Forms) -> Launch {
        let mut arguments = arguments![x.read(), x.shape[0] as i32, x.shape[1] as i32];
        arguments.extend(forms.iter().map(|form| maybe_write(form.as_ref())));
        let blocks = [squares(x.shape), 1, self.replicas() as u32];
        Launch {
            module: Module::Operands(self.precision()),
            kernel: "pack",
            shape: LaunchShape { blocks, threads: PACK_THREADS, shared: 0, cluster: 1 },
            arguments,
        }
    }
}

/// Cuts the list so that what is needed first is there before the rest.
fn tables(early: &[(CudaTensor, Forms)]) -> Vec<&[(CudaTensor, Forms)]> {
    /// About as many as run at once.
    const SQUARES: u32 = 320;
    let (mut tables, mut start, mut sum) = (Vec::new(), 0, 0);
    for (index, (x, _)) in early.iter().enumerate() {
        if sum >= SQUARES || index - start == ENTRIES.0 {
            tables.push(&early[start..index]);
            (start, sum) = (index, 0);
        }
        sum += squares(x.shape);
    }
    tables.extend((start < early.len()).then(|| &early[start..]));
    tables
}

/// How many squares a matrix has.
pub(crate) fn squares(shape: Shape) -> u32 {
    shape.iter().map(|size| size.div_ceil(SIDE)).product::<usize>() as u32
}

/// Lets kernels skip results that are only read as operands.
pub(crate) fn skip_unread(launches: &mut [Launch]) {
    let mut uses = HashMap::<u64, usize>::new();
    for launch in &*launches {
        launch.each_use(|buffer, _| *uses.entry(buffer.number()).or_default() += 1);
    }
    for launch in launches {
        let can_skip = matches!(launch.module, Module::Warpgroups(_))
            || ["concat", "add_sides"].contains(&launch.kernel);
        let Some(result) = launch.arguments.get_mut(2).filter(|_| can_skip) else { continue };
        if let Argument::Matrix(view, Use::Write) = result
            && !view.buffer.is_placed()
            && uses.get(&view.buffer.number()) == Some(&1)
            && Rc::strong_count(&view.buffer) == 1
        {
            *result = Argument::Nothing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::testing::tensor;

    #[test]
    fn a_kernel_that_goes_on_stores_what_comes_last() {
        let [x, y, z] = [(); 3].map(|()| tensor([4, 2]));
        let mut operands = Operands::default();
        operands.note(&x, Maker::Launch(3));
        assert!(operands.pass_on(&x, &y));
        assert!(operands.find(&x).is_none());
        assert!(matches!(operands.find(&y).unwrap().maker, Maker::Launch(3)));
        // Not if it stores what came before; and what nobody can store makes no difference.
        operands.find(&y).unwrap().forms[Form::Rows as usize] = Some(x.clone());
        assert!(!operands.pass_on(&y, &z));
        assert!(operands.pass_on(&x, &z) && operands.find(&z).is_none());
    }
}
