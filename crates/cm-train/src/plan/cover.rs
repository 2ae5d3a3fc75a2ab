//! States that cover others evenly in a metric.

use crate::Result;

/// Rows chosen among others, and which of them each row is nearest to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cover {
    /// The chosen rows, in the order of their choice.
    pub(crate) nodes: Vec<usize>,
    /// For each row the number of the chosen one that it is nearest to.
    pub(crate) nearest: Vec<u32>,
    /// How far that is.
    pub(crate) away: Vec<f32>,
}

/// How many of the farthest rows are looked at together, and how many of them are chosen before all
/// rows are looked at again.
const POOL: usize = 256;
const BLOCK: usize = 32;

/// Farthest-point sampling: after the row `first` always the row that is farthest from all that are
/// chosen, until `most` are chosen or none is farther than `enough`.
///
/// `apart(some, others)` gives the distances of every row of `some` with every row of `others`, row
/// by row; with all rows if there are no `others`. All rows are compared with a block of chosen ones
/// at a time: as long as the farthest is among the pool of those that were farthest before, the
/// others need not be asked.
pub(crate) fn cover(
    rows: usize,
    first: usize,
    most: usize,
    enough: f32,
    mut apart: impl FnMut(&[usize], Option<&[usize]>) -> Result<Vec<f32>>,
) -> Result<Cover> {
    let mut found =
        Cover { nodes: Vec::new(), nearest: vec![0; rows], away: vec![f32::INFINITY; rows] };
    if rows == 0 || most == 0 {
        return Ok(found);
    }
    let mut block = vec![first];
    loop {
        found.take(&block, &apart(&block, None)?);
        let left = most - found.nodes.len();
        block = next_block(&found, left.min(BLOCK), enough, &mut apart)?;
        if block.is_empty() {
            return Ok(found);
        }
    }
}

/// The next rows to choose, at most so many.
fn next_block(
    found: &Cover,
    most: usize,
    enough: f32,
    apart: &mut impl FnMut(&[usize], Option<&[usize]>) -> Result<Vec<f32>>,
) -> Result<Vec<usize>> {
    // The farthest first, earlier rows before later ones.
    let mut order: Vec<usize> =
        (0..found.away.len()).filter(|&row| found.away[row] > enough).collect();
    let farther = |a: &usize, b: &usize| found.away[*b].total_cmp(&found.away[*a]).then(a.cmp(b));
    let mut bound = enough;
    if order.len() > POOL {
        order.select_nth_unstable_by(POOL, farther);
        bound = found.away[order[POOL]];
        order.truncate(POOL);
    }
    order.sort_unstable_by(farther);
    if order.is_empty() || most == 0 {
        return Ok(Vec::new());
    }
    let between = apart(&order, Some(&order))?;
    let mut away: Vec<f32> = order.iter().map(|&row| found.away[row]).collect();
    let mut block = Vec::new();
    while block.len() < most {
        let mut farthest = 0;
        for (place, distance) in away.iter().enumerate() {
            if *distance > away[farthest] {
                farthest = place;
            }
        }
        // Among equals one outside the pool could come first, which makes no difference.
        if away[farthest] <= enough || (away[farthest] < bound && !block.is_empty()) {
            break;
        }
        block.push(order[farthest]);
        let row = &between[farthest * order.len()..][..order.len()];
        away.iter_mut().zip(row).for_each(|(away, new)| *away = away.min(*new));
        away[farthest] = f32::NEG_INFINITY;
    }
    Ok(block)
}

/// Rows of a share that its most typical one is looked for among.
const LOOKED_AT: usize = 32;

/// Typical rows: each of the `first` ones makes way for the row that is least far, on average, from
/// those that are nearer to it than to any other of the `first`. For data that no number of rows
/// covers, where the farthest rows would be odd ones out.
pub(crate) fn typical(
    rows: usize,
    first: &[usize],
    mut apart: impl FnMut(&[usize], Option<&[usize]>) -> Result<Vec<f32>>,
) -> Result<Cover> {
    let before = nearest_of(rows, first, &mut apart)?;
    let mut members = vec![Vec::new(); first.len()];
    before.nearest.iter().enumerate().for_each(|(row, &node)| members[node as usize].push(row));
    let mut nodes = Vec::new();
    for members in members.iter().filter(|members| !members.is_empty()) {
        let every = members.len().div_ceil(LOOKED_AT);
        let some: Vec<usize> = members.iter().copied().step_by(every).collect();
        let between = apart(&some, Some(&some))?;
        let sums = between.chunks_exact(some.len()).map(|row| row.iter().sum::<f32>());
        let best = sums.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        nodes.extend(best.map(|(place, _)| some[place]));
    }
    nearest_of(rows, &nodes, &mut apart)
}

/// Which of the chosen rows each row is nearest to.
fn nearest_of(
    rows: usize,
    nodes: &[usize],
    apart: &mut impl FnMut(&[usize], Option<&[usize]>) -> Result<Vec<f32>>,
) -> Result<Cover> {
    let (nearest, away) = (vec![0; rows], vec![f32::INFINITY; rows]);
    let mut found = Cover { nodes: Vec::new(), nearest, away };
    for block in nodes.chunks(BLOCK) {
        found.take(block, &apart(block, None)?);
    }
    Ok(found)
}

impl Cover {
    /// Takes rows as nodes, given how far all rows are from them.
    fn take(&mut self, block: &[usize], distances: &[f32]) {
        let rows = self.away.len();
        for (node, distances) in block.iter().zip(distances.chunks_exact(rows)) {
            let number = self.nodes.len() as u32;
            self.nodes.push(*node);
            for (row, &distance) in distances.iter().enumerate() {
                if distance < self.away[row] {
                    (self.away[row], self.nearest[row]) = (distance, number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cm_random::{Philox, unit_f32};
    use rand_core::Rng;

    use super::*;

    fn points(count: usize) -> Vec<[f32; 2]> {
        let mut random = Philox::new(3).stream(0, 0);
        (0..count).map(|_| std::array::from_fn(|_| unit_f32(random.next_u32()))).collect()
    }

    fn between(a: [f32; 2], b: [f32; 2]) -> f32 {
        (a[0] - b[0]).hypot(a[1] - b[1])
    }

    /// Blocks change nothing: the same rows in the same order as one at a time.
    #[test]
    fn each_is_the_farthest_from_all_before() {
        let points = points(2_000);
        let mut calls = 0;
        let found = cover(points.len(), 7, 300, 0.0, |some, others| {
            calls += usize::from(others.is_none());
            let all: Vec<usize> = (0..points.len()).collect();
            let others = others.unwrap_or(&all);
            let rows = some.iter().flat_map(|&a| others.iter().map(move |&b| (a, b)));
            Ok(rows.map(|(a, b)| between(points[a], points[b])).collect())
        })
        .unwrap();
        let mut away = vec![f32::INFINITY; points.len()];
        let mut next = 7;
        for &node in &found.nodes {
            assert_eq!(node, next);
            for (row, away) in away.iter_mut().enumerate() {
                *away = away.min(between(points[node], points[row]));
            }
            next = (0..points.len()).fold(0, |a, b| if away[b] > away[a] { b } else { a });
        }
        assert_eq!((found.nodes.len(), &found.away), (300, &away));
        for (row, &node) in found.nearest.iter().enumerate() {
            assert_eq!(between(points[row], points[found.nodes[node as usize]]), away[row]);
        }
        assert!(calls < 60, "{calls}");
    }

    #[test]
    fn it_ends_when_all_is_covered() {
        let points = points(500);
        let apart = |some: &[usize], others: Option<&[usize]>| {
            let all: Vec<usize> = (0..points.len()).collect();
            let others = others.unwrap_or(&all);
            let rows = some.iter().flat_map(|&a| others.iter().map(move |&b| (a, b)));
            Ok(rows.map(|(a, b)| between(points[a], points[b])).collect())
        };
        let found = cover(points.len(), 0, 500, 0.2, apart).unwrap();
        assert!(found.nodes.len() < 60, "{}", found.nodes.len());
        assert!(found.away.iter().all(|away| *away <= 0.2));
        for (at, &a) in found.nodes.iter().enumerate() {
            let others = &found.nodes[..at];
            assert!(others.iter().all(|&b| between(points[a], points[b]) > 0.2));
        }
        assert!(cover(0, 0, 5, 0.0, apart).unwrap().nodes.is_empty());
    }

    /// Thirty places, each in a hundred postures that differ more than places do, and some rows that
    /// are far from everything.
    #[test]
    fn typical_rows_are_no_odd_ones_out() {
        let mut random = Philox::new(5).stream(0, 0);
        let mut unit = || unit_f32(random.next_u32());
        let rows: Vec<[f32; 3]> = (0..3_000)
            .map(|row| match row % 50 {
                0 => [30.0 * unit(), 50.0 + 100.0 * unit(), 100.0 * unit()],
                _ => [(row % 30) as f32, 2.0 * unit(), 2.0 * unit()],
            })
            .collect();
        let apart = |some: &[usize], others: Option<&[usize]>| {
            let all: Vec<usize> = (0..rows.len()).collect();
            let others = others.unwrap_or(&all);
            let between = |a: usize, b: usize| -> f32 {
                rows[a].iter().zip(rows[b]).map(|(a, b)| (a - b).abs()).sum()
            };
            let pairs = some.iter().flat_map(|&a| others.iter().map(move |&b| (a, b)));
            Ok(pairs.map(|(a, b)| between(a, b)).collect())
        };
        let odd = |found: &Cover| found.nodes.iter().filter(|&row| row % 50 == 0).count();
        let farthest = cover(rows.len(), 1, 60, 0.0, apart).unwrap();
        assert!(odd(&farthest) > 30, "{}", odd(&farthest));
        let first: Vec<usize> = (0..rows.len()).step_by(51).collect();
        let found = typical(rows.len(), &first, apart).unwrap();
        assert!(odd(&found) <= 2, "{}", odd(&found));
        for (row, &node) in found.nearest.iter().enumerate() {
            let node = found.nodes[node as usize];
            assert_eq!(apart(&[row], Some(&[node])).unwrap()[0], found.away[row]);
        }
        let mean = |found: &Cover| found.away.iter().sum::<f32>() / found.away.len() as f32;
        assert!(mean(&found) < mean(&nearest_of(rows.len(), &first, &mut { apart }).unwrap()));
    }
}
