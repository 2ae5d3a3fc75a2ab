//! Gradients of MRN's pairwise distances by products, against those by differences.

use cm_cuda::{Precision, testing};
use cm_nn::testing::Exact;
use cm_nn::{
    Backend, DfdxBackend, Direction, Initialiser, Over, Parameters, Result, Values, Var, gradients,
};
use cm_quasimetric::Head;

/// Points that most pairs of are far apart, and some close, equal, or so far or so close that
/// squares of their differences overflow or vanish.
fn points(rows: usize, width: usize, stream: u32) -> Vec<f32> {
    let mut values = Exact::normal([rows, width], 1).to_f32();
    let moved = Exact::normal([rows, width], stream).to_f32();
    for (row, (values, moved)) in values.chunks_mut(width).zip(moved.chunks(width)).enumerate() {
        let scale = match row % 8 {
            0 => 0.0,
            1 => 1e-3,
            2 => 1e-18,
            _ => 1.0,
        };
        for (value, moved) in values.iter_mut().zip(moved) {
            *value = if row % 8 == 2 { scale * moved } else { *value + scale * moved };
        }
    }
    values
}

/// How large differences are, and where all points lie.
#[derive(Clone, Copy, Debug)]
struct Place {
    factor: f32,
    offset: f32,
}

const AT_ZERO: Place = Place { factor: 1.0, offset: 0.0 };

/// The distances, and the gradients of a weighted sum of them.
fn distances<B: Backend>(
    backend: &B,
    head: Head,
    [n, m, width]: [usize; 3],
    place: Place,
) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let x = set.create("x", [n, width], Initialiser::Constant(0.0))?;
    let y = set.create("y", [m, width], Initialiser::Constant(0.0))?;
    let placed = |values: Vec<f32>| {
        values.into_iter().map(|x| x * place.factor + place.offset).collect::<Vec<_>>()
    };
    x.set(&placed(points(n, width, 2)))?;
    y.set(&placed(points(m, width, 3)))?;
    let weights = Exact::normal([n, m], 9).var(backend)?;
    let mut found = None;
    let (_, gradients) = gradients(backend, &[&set], || {
        let distances = x.value()?.distance_pairs(&y.value()?, head, None)?;
        found = Some(distances.stop_gradient());
        distances.mul(&weights)?.sum(Over::All)
    })?;
    let gradients = [&x, &y].map(|parameter| gradients.get(parameter));
    let all = found.into_iter().chain(gradients.into_iter().flatten()).collect::<Vec<_>>();
    Var::read(&all.iter().collect::<Vec<_>>())
}

/// How far `found` is from `expected`, relative to the latter.
fn error(found: &[f32], expected: &[f32]) -> f64 {
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    difference / norm(&mut expected.iter().copied())
}

#[test]
fn gradients_by_products_are_those_by_differences() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for sizes in [[256, 256, 512], [33, 70, 22], [1000, 600, 64], [1, 9, 8]] {
        // Of ordinary size; squares overflow; where the last layer's bias goes in long training,
        // as its gradient is nothing but rounding errors.
        let places = [
            AT_ZERO,
            Place { factor: 1e20, ..AT_ZERO },
            Place { offset: 50.0, ..AT_ZERO },
            Place { offset: -1000.0, ..AT_ZERO },
        ];
        for place in places {
            let single = testing::backend(&[3], Precision::Highest);
            let expected = distances(&single, Head::MRN, sizes, place)?;
            for precision in [Precision::Tf32, Precision::Bf16] {
                let both = testing::backend(&[3, 4], precision);
                let found = distances(&both, Head::MRN, sizes, place)?;
                let [found_d, expected_d] = [&found[0], &expected[0]];
                assert_eq!(found_d.replica(1), expected_d.replica(0), "{sizes:?}, {precision}");
                for side in 1..3 {
                    let error = error(found[side].replica(0), expected[side].replica(0));
                    let what = format!("{sizes:?}, {place:?}, {precision}, side {side}");
                    assert!(error < 1e-3, "{what}: {error}");
                }
            }
        }
    }
    Ok(())
}

/// InfoNCE of distances with a number for each column, and the gradients with respect to all.
fn info_nce<B: Backend>(
    backend: &B,
    n: usize,
    direction: Direction,
    captured: bool,
) -> Result<Vec<Values>> {
    let mut set = Parameters::new(backend);
    let mut create = |name, shape| set.create(name, shape, Initialiser::LECUN_NORMAL);
    let (x, y) = (create("x", [n, 96])?, create("y", [n, 96])?);
    let column = create("column", [1, n])?;
    let step = || {
        let (loss, found) = gradients(backend, &[&set], || {
            let distances = x.value()?.distance_pairs(&y.value()?, Head::MRN, None)?;
            distances.affine(-3.0, 0.5)?.add(&column.value()?)?.info_nce(direction)
        })?;
        let found = [&x, &y, &column].map(|parameter| found.get(parameter));
        Ok([loss].into_iter().chain(found.into_iter().flatten()).collect::<Vec<_>>())
    };
    let mut capture = backend.capture(step);
    let all = if captured { capture.run()?.clone() } else { step()? };
    Var::read(&all.iter().collect::<Vec<_>>())
}

/// In a captured step the distances' kernel makes log-sum-exps of parts of the logits.
#[test]
fn log_sum_exps_of_parts_are_those_of_the_whole() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    for n in [1, 16, 33, 100, 256, 300, 600] {
        for direction in [Direction::Symmetric, Direction::Rows, Direction::Columns] {
            let expected = info_nce(&DfdxBackend::new(3), n, direction, false)?;
            for precision in [Precision::Tf32, Precision::Bf16] {
                let alone = testing::backend(&[3], precision);
                let eager = info_nce(&alone, n, direction, false)?;
                let found = info_nce(&alone, n, direction, true)?;
                let seeds = [3, 4, 5, 6, 7, 8, 9, 10];
                let together = info_nce(&testing::backend(&seeds, precision), n, direction, true)?;
                assert_eq!(found.len(), 4);
                for (index, found) in found.iter().enumerate() {
                    let what = format!("{n}, {direction:?}, {precision}, result {index}");
                    let found = found.replica(0);
                    assert_eq!(found, together[index].replica(0), "{what}");
                    // Some are 0 but for rounding.
                    let expected = expected[index].replica(0);
                    if expected.iter().all(|x| x.abs() < 1e-6) {
                        assert!(found.iter().all(|x| x.abs() < 1e-6), "{what}: {found:?}");
                        continue;
                    }
                    assert_eq!(found, eager[index].replica(0), "{what}");
                    let error = error(found, expected);
                    assert!(error < 1e-3, "{what}: {error}");
                }
            }
        }
    }
    Ok(())
}

/// Components of few and of many features, in tiles of all sizes, against the CPU.
#[test]
fn many_components_are_as_on_the_cpu() -> Result<()> {
    if testing::device().is_none() {
        return Ok(());
    }
    let head = |components| Head::Mrn { components, epsilon: 0.0 };
    let cases = [
        (8, [256, 256, 512]),
        (8, [600, 1000, 512]),
        (8, [33, 70, 48]),
        (3, [70, 33, 30]),
        (2, [300, 200, 160]),
        (1, [1, 9, 8]),
    ];
    for (components, sizes) in cases {
        let expected = distances(&DfdxBackend::new(3), head(components), sizes, AT_ZERO)?;
        let mut alone = None;
        // Many seeds take larger tiles; the numbers are the same.
        for seeds in [&[3][..], &[3, 4, 5, 6, 7, 8, 9, 10]] {
            let backend = testing::backend(seeds, Precision::Highest);
            let found = distances(&backend, head(components), sizes, AT_ZERO)?;
            for (what, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = error(found.replica(0), expected.replica(0));
                assert!(error < 1e-4, "{components} components, {sizes:?}, {what}: {error}");
            }
            let found = found.iter().map(|x| x.replica(0).to_vec()).collect::<Vec<_>>();
            assert_eq!(alone.get_or_insert_with(|| found.clone()), &found, "{sizes:?}");
        }
    }
    Ok(())
}
