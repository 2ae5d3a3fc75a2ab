//! In-place updates of cells, many in one launch.

use cm_nn::{AdamSettings, Decay, Result, backend::AdamCells};

use super::arguments;
use crate::backend::CudaBackend;
use crate::compile::Module::Optimise;
use crate::launch::Argument;
use crate::tensor::{CudaCell, CudaTensor, maybe_read};

/// Numbers that one block updates.
const PER_BLOCK: usize = 2048;
const THREADS: u32 = 256;
/// Entries of `struct AdamTable`, and bytes of one.
const ADAM_ENTRIES: (usize, usize) = (32, 72);
/// Entries of `struct PairTable`, and bytes of one.
const PAIR_ENTRIES: (usize, usize) = (64, 40);

/// One launch's table and number of blocks.
struct Table {
    argument: Argument,
    entries: u32,
    blocks: u32,
}

/// Cuts a list of cells into tables of a kernel: `matrices` of each entry, then its count and first
/// block.
fn tables(entries: Vec<(Vec<Argument>, usize)>, (most, bytes): (usize, usize)) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut entries = entries.into_iter().peekable();
    while entries.peek().is_some() {
        let (mut members, mut count, mut blocks) = (Vec::new(), 0, 0);
        for (matrices, length) in entries.by_ref().take(most) {
            members.extend(matrices);
            members.extend([Argument::Unsigned(length as u32), Argument::Unsigned(blocks)]);
            blocks += length.div_ceil(PER_BLOCK) as u32;
            count += 1;
        }
        let argument = Argument::Struct(members, most * bytes);
        tables.push(Table { argument, entries: count, blocks });
    }
    tables
}

pub(crate) fn adam(
    backend: &CudaBackend,
    settings: &AdamSettings,
    state: &AdamCells<'_, CudaBackend>,
    gradients: &[CudaTensor],
) -> Result<()> {
    let entries = |updates: bool| {
        let cells = state.parameters.iter().zip(state.first).zip(state.second).zip(gradients);
        let entries = cells.map(|(((p, m), v), g)| {
            let cell = |cell: &CudaCell| if updates { cell.update() } else { Argument::Nothing };
            (vec![cell(p), cell(m), cell(v), g.read()], p.count())
        });
        tables(entries.collect(), ADAM_ENTRIES)
    };
    let mut partial = None;
    let mut partials = 0;
    if settings.clip.is_some() {
        let tables = entries(false);
        partials = tables.iter().map(|table| table.blocks).sum();
        let sums = backend.new_tensor([1, (partials as usize).max(1)])?;
        let mut start = 0;
        for Table { argument, entries, blocks } in tables {
            let arguments = arguments![argument, entries, sums.update(), start];
            backend.run(Optimise, "sum_of_squares", blocks, THREADS, 0, arguments)?;
            start += blocks;
        }
        partial = Some(sums);
    }
    let rule = backend.new_tensor([1, 3])?;
    let (decay_steps, decay_to) = match settings.decay {
        Decay::None => (0.0, 1.0),
        Decay::Cosine { steps, to } => (steps as f32, to),
    };
    let arguments = arguments![
        state.step.update(),
        rule.write(),
        maybe_read(partial.as_ref()),
        partials,
        settings.clip.unwrap_or(0.0),
        settings.learning_rate,
        decay_steps,
        decay_to,
        settings.beta1,
        settings.beta2
    ];
    let threads = if partial.is_some() { THREADS } else { 32 };
    backend.run(Optimise, "adam_rule", 1, threads, 0, arguments)?;
    for Table { argument, entries, blocks } in entries(true) {
        let AdamSettings { beta1, beta2, epsilon, .. } = *settings;
        let arguments = arguments![argument, entries, rule.read(), beta1, beta2, epsilon];
        backend.run(Optimise, "adam", blocks, THREADS, 0, arguments)?;
    }
    Ok(())
}

pub(crate) fn sgd(
    backend: &CudaBackend,
    learning_rate: f32,
    cells: &[CudaCell],
    gradients: &[CudaTensor],
) -> Result<()> {
    let entries = cells.iter().zip(gradients);
    let entries = entries.map(|(p, g)| (vec![p.update(), g.read()], p.count()));
    weighted(backend, entries.collect(), 1.0, -learning_rate)
}

pub(crate) fn blend(
    backend: &CudaBackend,
    decay: f32,
    targets: &[CudaCell],
    sources: &[CudaCell],
) -> Result<()> {
    let entries = targets.iter().zip(sources);
    let entries = entries
        .map(|(target, source)| (vec![target.update(), source.tensor().read()], target.count()));
    weighted(backend, entries.collect(), decay, 1.0 - decay)
}

/// `target = keep target + take source` for every entry.
fn weighted(
    backend: &CudaBackend,
    entries: Vec<(Vec<Argument>, usize)>,
    keep: f32,
    take: f32,
) -> Result<()> {
    for Table { argument, entries, blocks } in tables(entries, PAIR_ENTRIES) {
        let arguments = arguments![argument, entries, keep, take];
        backend.run(Optimise, "blend", blocks, THREADS, 0, arguments)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_into_tables() {
        let entries = |count: usize| {
            (0..count).map(|i| (vec![Argument::Nothing], 2048 * (i % 3) + 1)).collect::<Vec<_>>()
        };
        let sizes = |count| {
            let tables = tables(entries(count), (4, 24));
            tables.iter().map(|table| (table.entries, table.blocks)).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), []);
        assert_eq!(sizes(3), [(3, 1 + 2 + 3)]);
        assert_eq!(sizes(5), [(4, 1 + 2 + 3 + 1), (1, 2)]);
    }
}
