//! Draws: the numbers that cm-random's layout states, on every backend.

use cm_random::{Philox, normal_pair, unit_f32};

use super::{Exact, Suite};
use crate::{Backend, Over, Result, Var};

/// [`Backend::draw`]: exact numbers, other numbers at other steps and streams.
pub fn draws<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let (seed, step, stream) = (99, 12_345_678_901, 0x120);
    let backend = suite.make(seed);
    backend.set_step(step)?;
    for shape in [[1, 1], [3, 7], [301, 130]] {
        let blocks = (0..).map(|index| Philox::new(seed).block(step, stream, index));
        let count = shape[0] * shape[1];
        let uniform = blocks.clone().flat_map(|words| words.map(unit_f32)).take(count);
        let found = Var::uniform(&backend, shape, stream)?.to_vec()?;
        assert!(uniform.eq(found), "uniform {shape:?}");
        let pairs = blocks.flat_map(|[a, b, c, d]| [normal_pair(a, b), normal_pair(c, d)]);
        let normal = pairs.flat_map(|(x, y)| [x, y]).take(count);
        let found = Var::normal(&backend, shape, stream)?.to_vec()?;
        assert!(normal.eq(found), "normal {shape:?}");
    }
    let draw = || Var::uniform(&backend, [3, 3], stream)?.to_vec();
    let before = draw()?;
    assert_ne!(Var::uniform(&backend, [3, 3], stream + 1)?.to_vec()?, before);
    backend.advance()?;
    assert_eq!(backend.step()?, step + 1);
    assert_ne!(draw()?, before);
    backend.set_step(step)?;
    assert_eq!(draw()?, before);
    Ok(())
}

/// [`Backend::categorical`]: the column its rule names, and the right frequencies.
pub fn categorical<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(7);
    let (rows, columns, stream) = (400, 37, 0x121);
    let logits = Exact::normal([rows, columns], 1).map_f32(|x| 2.0 * x + 100.0);
    let found = logits.var(&backend)?.categorical(stream)?;
    assert_eq!(found.shape(), [rows, 1]);
    let uniform = Var::uniform(&backend, [rows, 1], stream)?.to_vec()?;
    for (i, (chosen, u)) in found.to_vec()?.into_iter().zip(uniform).enumerate() {
        let weights = logits.row(i).iter().map(|x| (x - 100.0).exp()).collect::<Vec<_>>();
        let total = weights.iter().sum::<f64>();
        let below = |count: usize| weights[..count].iter().sum::<f64>() / total;
        let (chosen, u) = (chosen as usize, f64::from(u));
        assert!(below(chosen) <= u + 1e-5 && below(chosen + 1) >= u - 1e-5, "row {i}: {chosen}");
    }
    // 40,000 rows of the same logits.
    let shares = [0.5_f32, 0.2, 0.0, 0.3];
    let logits = Var::new(&backend, [1, 4], shares.iter().map(|share| share.ln()).collect())?;
    let many =
        Var::full(&backend, [40_000, 1], 0.0)?.add(&logits)?.categorical(stream)?.to_vec()?;
    for (index, share) in shares.into_iter().enumerate() {
        let count = many.iter().filter(|&&x| x == index as f32).count() as f32;
        let deviation = (share * (1.0 - share) / 40_000.0).sqrt();
        assert!((count / 40_000.0 - share).abs() <= 4.0 * deviation, "{index}: {count}");
    }
    Ok(())
}

/// [`Backend::permutation`]: the ranks its rule names, every order alike.
pub fn permutation<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(3);
    for n in [1, 2, 5, 257] {
        let words = (0..).flat_map(|index| Philox::new(3).block(0, 0x122, index));
        let words = words.take(n).zip(0..n).collect::<Vec<_>>();
        let ranks = words.iter().map(|word| words.iter().filter(|other| other < &word).count());
        let found = Var::permutation(&backend, n, 0x122)?;
        assert_eq!(found.shape(), [n, 1]);
        assert!(ranks.map(|rank| rank as f32).eq(found.to_vec()?));
    }
    // Gathering by a permutation keeps every row once.
    let x = Exact::normal([50, 1], 1).var(&backend)?;
    let moved = x.gather_rows(&Var::permutation(&backend, 50, 0x122)?)?;
    assert_ne!(moved.to_vec()?, x.to_vec()?);
    assert!((moved.sum(Over::All)?.item()? - x.sum(Over::All)?.item()?).abs() < 1e-4);
    // Each of the six orders of three in about a sixth of 6,000 steps.
    let mut counts = std::collections::BTreeMap::<Vec<u8>, u32>::new();
    for step in 0..6000 {
        backend.set_step(step)?;
        let order = Var::permutation(&backend, 3, 0x122)?.to_vec()?;
        *counts.entry(order.into_iter().map(|x| x as u8).collect()).or_default() += 1;
    }
    assert_eq!(counts.len(), 6);
    let bound = 4.0 * (6000.0_f64 * (1.0 / 6.0) * (5.0 / 6.0)).sqrt();
    assert!(counts.values().all(|&count| (f64::from(count) - 1000.0).abs() < bound), "{counts:?}");
    Ok(())
}
