//! Layers whose results are put side by side store them there themselves.
//!
//! A metric of two networks is a matrix of both their results. Recorded are the networks' last
//! layers and a kernel that puts their results together, which is not needed.

use std::collections::HashMap;
use std::rc::Rc;

use crate::compile::Module;
use crate::launch::{Argument, Launch, Use, View};

/// Arguments of `concat`.
mod concat {
    pub(super) const SOURCES: usize = 0;
    pub(super) const RESULT: usize = 2;
    pub(super) const COLUMNS: usize = 4;
    pub(super) const BY_ROWS: usize = 5;
    pub(super) const WIDE: usize = 6;
    pub(super) const FORMS: usize = 7;
    /// Members of a source.
    pub(super) const MEMBERS: usize = 5;
}

/// Arguments of products on Hopper.
mod product {
    pub(super) const RESULT: usize = 2;
    pub(super) const COLUMNS: usize = 4;
    pub(super) const PITCH: usize = 8;
}

/// The launches without those that only put results of products side by side.
pub(crate) fn store_abreast(mut launches: Vec<Launch>) -> Vec<Launch> {
    let mut uses = HashMap::<u64, Vec<usize>>::new();
    for (index, launch) in launches.iter().enumerate() {
        launch.each_use(|buffer, _| uses.entry(buffer.number()).or_default().push(index));
    }
    let mut left_out = Vec::new();
    for index in 0..launches.len() {
        let Some(Joined { result, columns, sources }) = joined(&launches[index]) else { continue };
        let makers = sources.iter().map(|source| source.maker(&launches, &uses, index));
        let Some(makers) = makers.collect::<Option<Vec<_>>>() else { continue };
        for (maker, source) in makers.into_iter().zip(sources) {
            let mut part = result.clone();
            part.offset += source.start as usize;
            launches[maker].arguments[product::RESULT] = Argument::Matrix(part, Use::Part);
            launches[maker].arguments[product::PITCH] = Argument::Signed(columns);
        }
        left_out.push(index);
    }
    let kept = launches.into_iter().enumerate().filter(|(index, _)| !left_out.contains(index));
    kept.map(|(_, launch)| launch).collect()
}

/// What a launch puts side by side.
struct Joined {
    result: View,
    columns: i32,
    sources: Vec<Source>,
}

/// A matrix that is the columns from `start` on.
struct Source {
    view: View,
    start: i32,
    size: i32,
}

/// If all it does is to put whole matrices side by side, at whole groups of four numbers, in memory
/// that is not in use before.
fn joined(launch: &Launch) -> Option<Joined> {
    let arguments = (launch.kernel == "concat").then_some(&launch.arguments)?;
    let Argument::Matrix(result, Use::Write) = &arguments[concat::RESULT] else { return None };
    let columns = arguments[concat::COLUMNS].signed()?;
    let flags = [concat::BY_ROWS, concat::WIDE].map(|place| arguments[place].signed());
    let has_forms =
        arguments[concat::FORMS..].iter().any(|form| !matches!(form, Argument::Nothing));
    if flags != [Some(0), Some(1)] || has_forms || result.buffer.is_placed() {
        return None;
    }
    let Argument::Struct(members, _) = &arguments[concat::SOURCES] else { return None };
    let sources = members.chunks_exact(concat::MEMBERS).map(|members| {
        let Argument::Matrix(view, Use::Read) = &members[0] else { return None };
        let (start, size) = (members[1].signed()?, members[2].signed()?);
        let is_whole = view.offset == 0 && members[3].signed() == Some(size);
        is_whole.then(|| Source { view: view.clone(), start, size })
    });
    let sources = sources.collect::<Option<Vec<_>>>()?;
    Some(Joined { result: result.clone(), columns, sources })
}

impl Source {
    /// The product that makes it for the launch at `reader` and for nobody else.
    fn maker(
        &self,
        launches: &[Launch],
        uses: &HashMap<u64, Vec<usize>>,
        reader: usize,
    ) -> Option<usize> {
        let [maker, other] = uses.get(&self.view.buffer.number())?[..] else { return None };
        let launch = &launches[maker];
        // The third is `self`.
        let is_ours = other == reader
            && maker < reader
            && !self.view.buffer.is_placed()
            && Rc::strong_count(&self.view.buffer) == 3;
        let is_product = matches!(launch.module, Module::Warpgroups(_))
            && launch.arguments[product::COLUMNS].signed() == Some(self.size);
        let result = &launch.arguments[product::RESULT];
        let is_result = matches!(result, Argument::Matrix(_, Use::Write))
            && result.is_at(self.view.buffer.number(), 0);
        (is_ours && is_product && is_result).then_some(maker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::launch::testing::{launch, tensor};
    use crate::ops::arguments;
    use crate::tensor::CudaTensor;

    /// A product that stores `y`, as far as it matters here.
    fn layer(y: &CudaTensor) -> Launch {
        let [rows, columns] = y.shape.map(|size| Argument::Signed(size as i32));
        let (x, w) = (tensor([1, 1]), tensor([1, 1]));
        let pitch = columns.clone();
        let arguments =
            arguments![x.read(), w.read(), y.write(), rows, columns, 64, 1, 1, pitch, 0.0_f32];
        launch(Module::Warpgroups(Precision::Tf32), "layer_small", arguments)
    }

    /// `parts` side by side, with `forms` as the last arguments.
    fn concat(parts: &[&CudaTensor], y: &CudaTensor, forms: [Argument; 3]) -> Launch {
        let mut start = 0;
        let sources = parts.iter().flat_map(|part| {
            let size = part.shape[1] as i32;
            start += size;
            arguments![part.read(), start - size, size, size, 0_i32]
        });
        let sources = Argument::Struct(sources.collect(), 256);
        let [rows, columns] = y.shape.map(|size| size as i32);
        let mut arguments =
            arguments![sources, parts.len() as u32, y.write(), rows, columns, 0_i32, 1_i32];
        arguments.extend(forms);
        launch(Module::Operands(Precision::Tf32), "concat", arguments)
    }

    const NO_FORMS: [Argument; 3] = [Argument::Nothing, Argument::Nothing, Argument::Nothing];

    #[test]
    fn layers_store_their_columns_of_the_whole() {
        let (a, b, y) = (tensor([4, 8]), tensor([4, 12]), tensor([4, 20]));
        let launches = vec![layer(&a), layer(&b), concat(&[&a, &b], &y, NO_FORMS)];
        drop([a, b]);
        let launches = store_abreast(launches);
        let found = launches.iter().map(|launch| {
            let Argument::Matrix(view, use_) = &launch.arguments[product::RESULT] else { panic!() };
            assert_eq!(view.buffer.number(), y.view.buffer.number());
            (*use_, view.offset, launch.arguments[product::PITCH].signed())
        });
        let found = found.collect::<Vec<_>>();
        assert_eq!(found, [(Use::Part, 0, Some(20)), (Use::Part, 8, Some(20))]);
    }

    #[test]
    fn what_somebody_else_needs_stays_apart() {
        let len = |launches| store_abreast(launches).len();
        let made = || (tensor([4, 8]), tensor([4, 8]), tensor([4, 16]));
        // A part that is held, or read by another kernel, or taken twice.
        let (a, b, y) = made();
        assert_eq!(len(vec![layer(&a), layer(&b), concat(&[&a, &b], &y, NO_FORMS)]), 3);
        let (a, b, y) = made();
        let (other, both) = (tensor([4, 8]), [&a, &b]);
        let launches = vec![
            layer(&a),
            layer(&b),
            concat(&both, &y, NO_FORMS),
            concat(&[&a], &other, NO_FORMS),
        ];
        drop([a, b]);
        assert_eq!(len(launches), 4);
        let (a, _, y) = made();
        let launches = vec![layer(&a), concat(&[&a, &a], &y, NO_FORMS)];
        drop(a);
        assert_eq!(len(launches), 2);
        // A whole that is stored as an operand too, and parts that no product makes.
        let (a, b, y) = made();
        let forms = [tensor([4, 16]).write(), Argument::Nothing, Argument::Nothing];
        let launches = vec![layer(&a), layer(&b), concat(&[&a, &b], &y, forms)];
        drop([a, b]);
        assert_eq!(len(launches), 3);
        let (a, b, y) = made();
        let launches = vec![layer(&a), concat(&[&a, &b], &y, NO_FORMS)];
        drop([a, b]);
        assert_eq!(len(launches), 2);
    }
}
