//! Moving rows and columns.

use super::{Exact, Suite};
use crate::{Backend, Result, Var};

/// [`Backend::concat`].
pub fn concat<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let parts = |shapes: [[usize; 2]; 3]| {
        shapes
            .into_iter()
            .zip(1..)
            .map(|(shape, stream)| Exact::normal(shape, stream))
            .collect::<Vec<_>>()
    };
    let find = |x: &[Exact], axis: usize, mut position: usize| {
        for (index, part) in x.iter().enumerate() {
            match position.checked_sub(part.shape[axis]) {
                Some(rest) => position = rest,
                None => return (index, position),
            }
        }
        unreachable!("position beyond the parts")
    };
    let operation = |x: &[Var<B>]| Var::concat_columns(&[&x[0], &x[1], &x[2]]);
    suite.check(&backend, "concat_columns", &parts([[3, 2], [3, 1], [3, 4]]), operation, |x| {
        Exact::from_fn([3, 7], |i, j| {
            let (part, j) = find(x, 1, j);
            x[part].at(i, j)
        })
    })?;
    let operation = |x: &[Var<B>]| Var::concat_rows(&[&x[0], &x[1], &x[2]]);
    suite.check(&backend, "concat_rows", &parts([[2, 3], [1, 3], [4, 3]]), operation, |x| {
        Exact::from_fn([7, 3], |i, j| {
            let (part, i) = find(x, 0, i);
            x[part].at(i, j)
        })
    })?;
    // The same matrix twice receives both parts of the gradient.
    let operation = |x: &[Var<B>]| Var::concat_columns(&[&x[0], &x[0]]);
    let doubled = |x: &[Exact]| Exact::from_fn([3, 4], |i, j| x[0].at(i, j % 2));
    suite.check(&backend, "concat_columns of one", &[Exact::normal([3, 2], 1)], operation, doubled)
}

/// [`Backend::slice`].
pub fn slice<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let x = [Exact::normal([5, 6], 1)];
    for (start, end) in [(0, 5), (0, 1), (2, 4), (4, 5)] {
        let rows = |x: &[Exact]| Exact::from_fn([end - start, 6], |i, j| x[0].at(i + start, j));
        suite.check(&backend, "slice_rows", &x, |x| x[0].slice_rows(start..end), rows)?;
        let columns = |x: &[Exact]| Exact::from_fn([5, end - start], |i, j| x[0].at(i, j + start));
        suite.check(&backend, "slice_columns", &x, |x| x[0].slice_columns(start..end), columns)?;
    }
    // Overlapping parts add up in the gradient.
    let operation = |x: &[Var<B>]| x[0].slice_rows(0..3)?.mul(&x[0].slice_rows(2..5)?);
    let exact = |x: &[Exact]| Exact::from_fn([3, 6], |i, j| x[0].at(i, j) * x[0].at(i + 2, j));
    suite.check(&backend, "overlapping slices", &x, operation, exact)
}

/// [`Backend::roll`].
pub fn roll<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let x = [Exact::normal([5, 3], 1)];
    for shift in [0_isize, 1, 4, 5, -1, 12, -7] {
        let exact = |x: &[Exact]| {
            let source = |i: usize| (i as isize - shift).rem_euclid(5) as usize;
            Exact::from_fn([5, 3], |i, j| x[0].at(source(i), j))
        };
        suite.check(&backend, &format!("roll {shift}"), &x, |x| x[0].roll_rows(shift), exact)?;
    }
    Ok(())
}

/// [`Backend::gather`], with repeated and unused rows, and indices that are not whole or not in range.
pub fn gather<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let x = [Exact::normal([4, 3], 1)];
    let index = vec![2.0, 0.0, 2.0, 1.0, 2.0, 3.9, 77.0, -5.0, f32::NAN, f32::INFINITY];
    let rows = [2, 0, 2, 1, 2, 3, 3, 0, 0, 3];
    let index = Var::new(&backend, [rows.len(), 1], index)?;
    let exact = |x: &[Exact]| Exact::from_fn([rows.len(), 3], |i, j| x[0].at(rows[i], j));
    suite.check(&backend, "gather", &x, |x| x[0].gather_rows(&index), exact)
}

/// [`Backend::transpose`].
pub fn transpose<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for shape in [[1, 1], [1, 5], [5, 1], [3, 4], [18, 35]] {
        let x = [Exact::normal(shape, 1)];
        let exact = |x: &[Exact]| Exact::from_fn([shape[1], shape[0]], |i, j| x[0].at(j, i));
        suite.check(&backend, &format!("transpose {shape:?}"), &x, |x| x[0].transpose(), exact)?;
    }
    Ok(())
}

/// [`Backend::diagonal`].
pub fn diagonal<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for n in [1, 2, 7] {
        let x = [Exact::normal([n, n], 1)];
        let exact = |x: &[Exact]| Exact::from_fn([n, 1], |i, _| x[0].at(i, i));
        suite.check(&backend, "diagonal", &x, |x| x[0].diagonal(), exact)?;
    }
    Ok(())
}
