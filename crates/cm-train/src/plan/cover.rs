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
        let distances = apart(&block, None)?;
        for (node, distances) in block.iter().zip(distances.chunks_exact(rows)) {
            let number = found.nodes.len() as u32;
            found.nodes.push(*node);
            for (row, &distance) in distances.iter().enumerate() {
                if distance < found.away[row] {
                    (found.away[row], found.nearest[row]) = (distance, number);
                }
            }
        }
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
}
