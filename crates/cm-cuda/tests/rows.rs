//! IQE by rows, and rows that are taken many times, against the CPU.

use cm_cuda::{Precision, testing};
use cm_nn::testing::Exact;
use cm_nn::{
    Backend, DfdxBackend, Initialiser, Over, Parameters, Reduction, Result, Values, Var, gradients,
};
use cm_quasimetric::Head;

const ROWS: usize = 70;

/// Three sets of rows of one matrix, the distances between them, and the matrix's gradient, to
/// which every set adds on both sides.
fn distances<B: Backend>(
    backend: &B,
    [groups, size]: [usize; 2],
    reduction: Reduction,
    has_ties: bool,
) -> Result<Vec<Values>> {
    let width = groups * size;
    let mut set = Parameters::new(backend);
    let x = set.create("x", [3 * ROWS, width], Initialiser::Constant(0.0))?;
    let values = Exact::normal([3 * ROWS, width], 1).to_f32();
    x.set(&values.into_iter().map(|x| if has_ties { x.round() } else { x }).collect::<Vec<_>>())?;
    let head = Head::Iqe { groups, reduction };
    let weights = Exact::normal([ROWS, 1], 9).var(backend)?;
    let mut found = Vec::new();
    let (_, gradients) = gradients(backend, &[&set], || {
        let all = x.value()?;
        let part = |index: usize| all.slice_rows(index * ROWS..(index + 1) * ROWS);
        let parts = [part(0)?, part(1)?, part(2)?];
        let mut sum = Var::full(backend, [1, 1], 0.0)?;
        for (from, to) in [(0, 1), (0, 2), (2, 1), (1, 2)] {
            let distance = parts[from].distance_rows(&parts[to], head, None)?;
            found.push(distance.stop_gradient());
            sum = sum.add(&distance.mul(&weights)?.sum(Over::All)?)?;
        }
        Ok(sum)
    })?;
    found.extend(gradients.get(&x));
    Var::read(&found.iter().collect::<Vec<_>>())
}

fn assert_close(found: &[Values], expected: &[Values], what: &str) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_all_close(found.replica(0), expected.replica(0), &format!("{what}, {index}"));
    }
}

fn assert_all_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-4 * (1.0 + b.abs()), "{what}: {a}, {b}");
    }
}

/// The sums of each group's gradients: of features whose left ends tie any one may have them.
fn of_groups(gradient: &Values, size: usize) -> Vec<f32> {
    gradient.replica(0).chunks(size).map(|group| group.iter().sum()).collect()
}

#[test]
fn iqe_by_rows_is_as_on_the_cpu() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    let sizes = [
        [64, 32],
        [64, 8],
        [3, 5],
        [130, 8],
        [7, 12],
        [200, 3],
        [1, 1],
        [33, 16],
        [4, 31],
        [2, 40],
    ];
    for sizes in sizes {
        for reduction in [Reduction::Mean, Reduction::Max, Reduction::MAX_MEAN] {
            for has_ties in [false, true] {
                let what = format!("{sizes:?}, {reduction:?}, ties: {has_ties}");
                let expected = distances(&DfdxBackend::new(3), sizes, reduction, has_ties)?;
                let one = testing::backend(&[3], Precision::Highest);
                let found = distances(&one, sizes, reduction, has_ties)?;
                match has_ties {
                    false => assert_close(&found, &expected, &what),
                    true => {
                        let [(distances, gradient), (others, other)] =
                            [&found, &expected].map(|values| values.split_at(values.len() - 1));
                        assert_close(distances, others, &what);
                        let [gradient, other] =
                            [gradient, other].map(|values| of_groups(&values[0], sizes[1]));
                        assert_all_close(&gradient, &other, &what);
                    }
                }
                for precision in [Precision::Highest, Precision::Tf32] {
                    let both = testing::backend(&[3, 4], precision);
                    let again = distances(&both, sizes, reduction, has_ties)?;
                    for (one, both) in found.iter().zip(&again) {
                        assert_eq!(one.replica(0), both.replica(1), "{what}, {precision}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// Rows taken `taken` times from `rows`, and the gradient.
fn gathered<B: Backend>(backend: &B, [rows, columns, taken]: [usize; 3]) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let x = set.create("x", [rows, columns], Initialiser::Constant(0.0))?;
    x.set(&Exact::normal([rows, columns], 1).to_f32())?;
    let index = (0..taken).map(|i| (i * i % rows) as f32).collect::<Vec<_>>();
    let index = Var::new(backend, [taken, 1], index)?;
    let weights = Exact::normal([taken, columns], 2).var(backend)?;
    let (_, gradients) = gradients(backend, &[&set], || {
        x.value()?.gather_rows(&index)?.mul(&weights)?.sum(Over::All)
    })?;
    let found = gradients.get(&x).into_iter().collect::<Vec<_>>();
    Var::read(&found.iter().collect::<Vec<_>>())
}

#[test]
fn rows_taken_many_times_are_as_on_the_cpu() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for sizes in [[5, 70, 2500], [300, 3, 1024], [7, 300, 1], [4, 33, 1025], [256, 2048, 256]] {
        let expected = gathered(&DfdxBackend::new(3), sizes)?;
        let found = gathered(&testing::backend(&[3, 4], Precision::Highest), sizes)?;
        assert_close(&found, &expected, &format!("{sizes:?}"));
    }
    Ok(())
}
